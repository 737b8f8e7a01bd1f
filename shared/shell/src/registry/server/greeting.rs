//! How a client of HTTP/2 greets: with the preface and a frame of settings.

/// What every client says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of a frame before its payload: length, type, flags, stream.
const HEADER: usize = 9;
/// The type of a frame of settings.
const SETTINGS: u8 = 4;
/// Longest payload of the settings that is waited for. There are six settings of six bytes each.
const LONGEST: usize = 1024;

/// What has arrived of a greeting.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    start: Vec<u8>,
    received: usize,
}

/// How far a greeting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greeted {
    /// More of it is to come.
    Not,
    /// It is whole.
    Whole,
    /// It is none.
    Wrong,
}

impl Greeting {
    /// Takes in what has arrived next.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Greeted {
        let missing = (PREFACE.len() + HEADER).saturating_sub(self.start.len());
        self.start.extend_from_slice(&bytes[..missing.min(bytes.len())]);
        self.received = self.received.saturating_add(bytes.len());
        let preface = self.start.len().min(PREFACE.len());
        if self.start[..preface] != PREFACE[..preface] {
            return Greeted::Wrong;
        }
        let [high, middle, low, kind, ..] = self.start[preface..] else { return Greeted::Not };
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        if kind != SETTINGS || length > LONGEST {
            return Greeted::Wrong;
        }
        if self.received >= PREFACE.len() + HEADER + length { Greeted::Whole } else { Greeted::Not }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_whole_or_not_however_it_arrives() {
        let mut whole = PREFACE.to_vec();
        whole.extend([0, 0, 6, SETTINGS, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100]);
        for size in 1..=whole.len() {
            let mut greeting = Greeting::default();
            let answers: Vec<Greeted> = whole.chunks(size).map(|bytes| greeting.take(bytes)).collect();
            let (last, before) = answers.split_last().unwrap();
            assert_eq!(*last, Greeted::Whole, "in pieces of {size}");
            assert!(before.iter().all(|answer| *answer == Greeted::Not), "in pieces of {size}");
        }
        assert_eq!(Greeting::default().take(&whole[..whole.len() - 1]), Greeted::Not);
        assert_eq!(Greeting::default().take(b"GET / HTTP/1.1\r\n"), Greeted::Wrong);
        for wrong in [[0, 0, 6, 1, 0, 0, 0, 0, 0], [1, 0, 0, SETTINGS, 0, 0, 0, 0, 0]] {
            assert_eq!(Greeting::default().take(&[PREFACE, &wrong[..]].concat()), Greeted::Wrong);
        }
    }
}
