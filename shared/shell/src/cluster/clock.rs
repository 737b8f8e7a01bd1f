//! What time it is, by two clocks: one that never jumps, and one that counts while the machine sleeps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// A moment, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Since the clock was made. It never jumps, and may stand still while the machine sleeps.
    pub(crate) steady: Duration,
    /// As people set it: it may jump either way.
    pub(crate) wall: Timestamp,
}

impl Moment {
    /// So much later.
    pub(crate) fn after(self, pause: Duration) -> Self {
        let wall = SignedDuration::try_from(pause).ok().and_then(|pause| self.wall.checked_add(pause).ok());
        Self { steady: self.steady + pause, wall: wall.unwrap_or(Timestamp::MAX) }
    }

    /// How long it is until then, by the clock that says less. `None`: one of them says that it is over.
    pub(crate) fn until(self, then: Self) -> Option<Duration> {
        let steady = then.steady.checked_sub(self.steady)?;
        let wall = Duration::try_from(then.wall.duration_since(self.wall)).ok()?;
        Some(steady.min(wall)).filter(|rest| !rest.is_zero())
    }
}

/// The clocks. Tests bring their own.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> Moment + Send + Sync>);

impl Clock {
    /// Those of the machine.
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
