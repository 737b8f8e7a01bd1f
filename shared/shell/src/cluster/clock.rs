//! The current time on two clocks: a monotonic one, and the wall clock, which also runs while the machine is suspended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The time since the clock was created. It is monotonic and may stop while the machine is suspended.
    pub(crate) steady: Duration,
    /// The wall clock, which may jump in both directions.
    pub(crate) wall: Timestamp,
}

impl Moment {
    /// Returns the moment after a duration.
    pub(crate) fn after(self, pause: Duration) -> Self {
        let wall = SignedDuration::try_from(pause).ok().and_then(|pause| self.wall.checked_add(pause).ok());
        Self { steady: self.steady + pause, wall: wall.unwrap_or(Timestamp::MAX) }
    }

    /// Returns the duration until a later moment, the shorter one of both clocks; `None` if the moment is past on one of them.
    pub(crate) fn until(self, then: Self) -> Option<Duration> {
        let steady = then.steady.checked_sub(self.steady)?;
        let wall = Duration::try_from(then.wall.duration_since(self.wall)).ok()?;
        Some(steady.min(wall)).filter(|rest| !rest.is_zero())
    }
}

/// A source of moments, which tests replace.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> Moment + Send + Sync>);

impl Clock {
    /// Returns the clocks of the machine.
    pub(crate) fn system() -> Self {
        let began = Instant::now();
        Self::new(move || Moment { steady: began.elapsed(), wall: Timestamp::now() })
    }

    pub(crate) fn new(now: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(crate) fn now(&self) -> Moment {
        (self.0)()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.now())
    }
}
