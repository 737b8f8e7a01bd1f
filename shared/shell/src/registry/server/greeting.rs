//! The start of an HTTP/2 connection: the preface and a SETTINGS frame of the client, called greeting here.

/// The connection preface of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Size of a frame header, in bytes: length, type, flags, stream.
const HEADER: usize = 9;
/// The type of a SETTINGS frame.
const SETTINGS: u8 = 4;
/// Longest accepted payload of the SETTINGS frame, in bytes. HTTP/2 defines six settings of six bytes each.
const LONGEST: usize = 1024;

/// The received part of a greeting.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    start: Vec<u8>,
    received: usize,
}

/// The state of a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greeted {
    /// Incomplete.
    Not,
    /// Complete.
    Whole,
    /// Invalid.
    Wrong,
}

impl Greeting {
    /// Processes the next received bytes.
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
    fn a_greeting_may_arrive_in_pieces() {
        let mut whole = PREFACE.to_vec();
        whole.extend([0, 0, 6, SETTINGS, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100]);
        for size in 1..=whole.len() {
            let mut greeting = Greeting::default();
            let states: Vec<Greeted> = whole.chunks(size).map(|bytes| greeting.take(bytes)).collect();
            let (last, before) = states.split_last().unwrap();
            assert_eq!(*last, Greeted::Whole, "in pieces of {size}");
            assert!(before.iter().all(|state| *state == Greeted::Not), "in pieces of {size}");
        }
        assert_eq!(Greeting::default().take(&whole[..whole.len() - 1]), Greeted::Not);
        assert_eq!(Greeting::default().take(b"GET / HTTP/1.1\r\n"), Greeted::Wrong);
        for wrong in [[0, 0, 6, 1, 0, 0, 0, 0, 0], [1, 0, 0, SETTINGS, 0, 0, 0, 0, 0]] {
            assert_eq!(Greeting::default().take(&[PREFACE, &wrong[..]].concat()), Greeted::Wrong);
        }
    }
}
