//! Tests `serve` as a process with hostile clients and little memory: an honest client must be served before and after
//! any input, by the same process.
//!
//! The input is generated from a seed. `OLM_FUZZ_ROUNDS` sets the number of rounds, `OLM_FUZZ_SEED` the first seed.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::CATALOG;

/// The limit of the address space of the process, in KiB. Threads and the allocator reserve most of it, and use a part.
const ADDRESS_SPACE: u64 = 2 << 20;

/// The default number of rounds.
const ROUNDS: u64 = 3;

/// A timeout that an honest client never reaches.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The addresses of the hostile clients and of the honest one: limits are per address.
const HOSTILE: Ipv4Addr = Ipv4Addr::LOCALHOST;
const HONEST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const METHODS: [&str; 9] = [
    "/api.Registry/ListPackages",
    "/api.Registry/GetPackage",
    "/api.Registry/GetBundle",
    "/api.Registry/ListBundles",
    "/api.Registry/GetChannelEntriesThatProvide",
    "/api.Registry/GetDefaultBundleThatProvides",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/nobody.Knows/This",
];

/// A pseudorandom number generator (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}

/// Returns an HTTP/2 frame; `length` overrides its length field.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], length: Option<u32>) -> Vec<u8> {
    let length = length.unwrap_or_else(|| u32::try_from(payload.len()).unwrap()).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Returns headers in HPACK, as literals.
fn headers(list: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    let text = |text: &str| {
        // A length of seven bits, continued in further bytes.
        let mut bytes = Vec::new();
        match text.len() {
            short @ 0..127 => bytes.push(u8::try_from(short).unwrap()),
            long => {
                bytes.push(127);
                let mut rest = long - 127;
                while rest >= 128 {
                    bytes.push(u8::try_from(rest % 128).unwrap() | 128);
                    rest /= 128;
                }
                bytes.push(u8::try_from(rest).unwrap());
            }
        }
        bytes.extend_from_slice(text.as_bytes());
        bytes
    };
    for (name, value) in list {
        block.push(0);
        block.extend(text(name));
        block.extend(text(value));
    }
    block
}

fn asks(method: &str) -> Vec<u8> {
    headers(&[
        (":method", "POST"),
        (":scheme", "http"),
        (":path", method),
        (":authority", "garden"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ])
}

fn greeting() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[], None)].concat()
}

/// Returns a gRPC message; `length` overrides its length field.
fn message(bytes: &[u8], length: Option<u32>) -> Vec<u8> {
    let length = length.unwrap_or_else(|| u32::try_from(bytes.len()).unwrap());
    [&[0][..], &length.to_be_bytes(), bytes].concat()
}

fn connect(to: SocketAddr, from: Ipv4Addr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    socket.connect_timeout(&to.into(), TIMEOUT)?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

/// Returns whether the packages of the catalog, of which there is one, are received completely.
fn is_answered(to: SocketAddr) -> io::Result<bool> {
    let mut stream = connect(to, HONEST)?;
    let request = [
        greeting(),
        frame(HEADERS, END_HEADERS, 1, &asks(METHODS[0]), None),
        frame(DATA, END_STREAM, 1, &message(&[], None), None),
    ];
    stream.write_all(&request.concat())?;
    let (mut received, mut has_rose) = (Vec::new(), false);
    let mut part = [0; 4096];
    loop {
        let read = stream.read(&mut part)?;
        if read == 0 {
            return Ok(false);
        }
        received.extend_from_slice(&part[..read]);
        while let [a, b, c, kind, flags, _, _, _, stream_id, rest @ ..] = &received[..] {
            let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
            if rest.len() < length {
                break;
            }
            has_rose |= *kind == DATA && rest[..length].windows(4).any(|word| word == b"rose");
            if *stream_id == 1 && flags & END_STREAM != 0 && matches!(*kind, DATA | HEADERS) {
                return Ok(has_rose);
            }
            received.drain(..9 + length);
        }
    }
}

/// The kinds of input.
type Attack = fn(SocketAddr, &mut Random) -> io::Result<()>;

const ATTACKS: [(&str, Attack); 9] = [
    ("random bytes", random_bytes),
    ("greetings and frames that are cut", cut_frames),
    ("frames of random kinds", random_frames),
    ("random messages", random_messages),
    ("lengths beyond measure", false_lengths),
    ("headers without end", header_flood),
    ("streams that are reset at once", rapid_reset),
    ("sockets that are closed by half", half_closed),
    ("more connections than one address may have", many_connections),
];

fn send(to: SocketAddr, bytes: &[u8]) -> io::Result<TcpStream> {
    let mut stream = connect(to, HOSTILE)?;
    stream.write_all(bytes)?;
    Ok(stream)
}

fn random_bytes(to: SocketAddr, random: &mut Random) -> io::Result<()> {
    for _ in 0..20 {
        let mut bytes = random.bytes(4096);
        if random.below(2) == 0 {
            bytes.splice(..0, PREFACE.iter().copied());
        }
        send(to, &bytes)?;
    }
    Ok(())
}

fn cut_frames(to: SocketAddr, random: &mut Random) -> io::Result<()> {
    let method = METHODS[random.below(METHODS.len())];
    let whole = [
        greeting(),
        frame(HEADERS, END_HEADERS, 1, &asks(method), None),
        frame(DATA, 0, 1, &message(&random.bytes(64), None), None),
    ];
    let whole = whole.concat();
    for _ in 0..40 {
        send(to, &whole[..random.below(whole.len())])?;
    }
    Ok(())
}

fn random_frames(to: SocketAddr, random: &mut Random) -> io::Result<()> {
    for _ in 0..20 {
        let mut stream = send(to, &greeting())?;
        for _ in 0..50 {
            let [kind, flags, id, ..] = random.next().to_le_bytes();
            let payload = random.bytes(300);
            let length = (random.below(8) == 0).then(|| u32::from_le_bytes([kind, flags, id, 0]));
            // The server may close the connection, here and below.
            if stream.write_all(&frame(kind % 12, flags, u32::from(id % 8), &payload, length)).is_err() {
                break;
            }
        }
    }
    Ok(())
}

fn random_messages(to: SocketAddr, random: &mut Random) -> io::Result<()> {
    for _ in 0..10 {
        let mut stream = send(to, &greeting())?;
        for request in 0..30_u32 {
            let id = 2 * request + 1;
            let method = METHODS[random.below(METHODS.len())];
            // Known field numbers, with arbitrary bytes.
            let mut fields = Vec::new();
            for _ in 0..random.below(6) {
                let text = random.bytes(40);
                fields.extend([u8::try_from(random.below(8)).unwrap() << 3 | 2, u8::try_from(text.len()).unwrap()]);
                fields.extend(text);
            }
            if random.below(3) == 0 {
                fields = random.bytes(200);
            }
            let sent = [
                frame(HEADERS, END_HEADERS, id, &asks(method), None),
                frame(DATA, END_STREAM, id, &message(&fields, None), None),
            ];
            if stream.write_all(&sent.concat()).is_err() {
                break;
            }
        }
    }
    Ok(())
}

fn false_lengths(to: SocketAddr, random: &mut Random) -> io::Result<()> {
    for length in [u32::MAX, 1 << 31, 64 << 20, (64 << 10) + 1] {
        let method = METHODS[random.below(METHODS.len())];
        let begins = [greeting(), frame(HEADERS, END_HEADERS, 1, &asks(method), None)].concat();
        let mut stream = send(to, &begins)?;
        drop(stream.write_all(&frame(DATA, 0, 1, &message(&[0; 16_000], Some(length)), None)));
        // As much as announced, as far as the server accepts it.
        for _ in 0..32 {
            if stream.write_all(&frame(DATA, 0, 1, &[0; 16_000], None)).is_err() {
                break;
            }
        }
        let mut stream = send(to, &greeting())?;
        drop(stream.write_all(&frame(DATA, 0, 1, &[0; 64], Some(0x00ff_ffff))));
    }
    Ok(())
}

fn header_flood(to: SocketAddr, random: &mut Random) -> io::Result<()> {
    let long = "a".repeat(16_000);
    let block = headers(&[("x-a", &long)]);
    let mut stream = send(to, &greeting())?;
    drop(stream.write_all(&frame(HEADERS, 0, 1, &asks(METHODS[0]), None)));
    for _ in 0..500 {
        if stream.write_all(&frame(CONTINUATION, 0, 1, &block, None)).is_err() {
            break;
        }
    }
    // Many small frames, and continuations without headers.
    let mut stream = send(to, &greeting())?;
    let many: Vec<(&str, &str)> = vec![("x-b", "b"); 1_000];
    let small = headers(&many);
    drop(stream.write_all(&frame(HEADERS, 0, 1, &small, None)));
    for _ in 0..2_000 {
        let part: &[u8] = if random.below(2) == 0 { &[] } else { &small[..8] };
        if stream.write_all(&frame(CONTINUATION, 0, 1, part, None)).is_err() {
            break;
        }
    }
    Ok(())
}

fn rapid_reset(to: SocketAddr, random: &mut Random) -> io::Result<()> {
    let mut stream = send(to, &greeting())?;
    let method = METHODS[random.below(METHODS.len())];
    for request in 0..5_000_u32 {
        let id = 2 * request + 1;
        let sent = [
            frame(HEADERS, END_HEADERS, id, &asks(method), None),
            frame(RST_STREAM, 0, id, &8_u32.to_be_bytes(), None),
        ];
        if stream.write_all(&sent.concat()).is_err() {
            break;
        }
    }
    let mut stream = send(to, &greeting())?;
    for _ in 0..5_000 {
        let asked = [frame(PING, 0, 0, &[0; 8], None), frame(SETTINGS, 0, 0, &[], None)];
        if stream.write_all(&asked.concat()).is_err() {
            break;
        }
    }
    Ok(())
}

fn half_closed(to: SocketAddr, random: &mut Random) -> io::Result<()> {
    for _ in 0..20 {
        let whole = [greeting(), frame(HEADERS, END_HEADERS, 1, &asks(METHODS[3]), None)].concat();
        let stream = send(to, &whole[..random.below(whole.len() + 1)])?;
        let how = if random.below(2) == 0 { Shutdown::Write } else { Shutdown::Read };
        // The connection may already be closed.
        drop(stream.shutdown(how));
    }
    Ok(())
}

fn many_connections(to: SocketAddr, random: &mut Random) -> io::Result<()> {
    let mut held = Vec::new();
    for _ in 0..300 {
        // Connections above the limit are closed at once.
        let Ok(mut stream) = connect(to, HOSTILE) else { continue };
        if random.below(2) == 0 {
            drop(stream.write_all(&greeting()));
        }
        held.push(stream);
    }
    assert!(is_answered(to)?, "while one address holds {} connections", held.len());
    Ok(())
}

/// A server process, killed on drop.
struct Serve {
    child: Child,
    address: SocketAddr,
}

impl Drop for Serve {
    fn drop(&mut self) {
        // A process that has ended cannot be killed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Serve {
    fn start(folder: &std::path::Path) -> Self {
        fs::create_dir(folder.join("catalog")).unwrap();
        fs::write(folder.join("catalog/catalog.yaml"), CATALOG).unwrap();
        let script = format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" serve ./catalog --port 0");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_kubectl-olm-catalog")]).current_dir(folder).env_clear();
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut talk = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        talk.read_line(&mut said).unwrap();
        let address = said.trim_end().rsplit_once(" at ").and_then(|(_, address)| address.parse().ok());
        // Its messages about clients are not read.
        thread::spawn(move || io::copy(&mut talk, &mut io::sink()));
        let serve = Self { child, address: address.unwrap_or_else(|| SocketAddr::from((HOSTILE, 0))) };
        assert!(serve.address.port() != 0, "{said}");
        serve
    }

    /// Returns the peak memory of the process, in KiB.
    fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

/// Sends one byte per second until the other clients are done.
fn slow(to: SocketAddr, bytes: &[u8], done: &Receiver<()>) {
    let Ok(mut stream) = connect(to, HOSTILE) else { return };
    for byte in bytes.iter().cycle() {
        let is_closed = stream.write_all(&[*byte]).is_err();
        if is_closed || done.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

#[test]
fn an_honest_client_is_served_among_hostile_ones() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (rounds, seed) = (number("OLM_FUZZ_ROUNDS").unwrap_or(ROUNDS), number("OLM_FUZZ_SEED").unwrap_or(1));
    let folder = tempfile::tempdir().unwrap();
    let mut serve = Serve::start(folder.path());
    let (to, pid) = (serve.address, serve.child.id());
    assert!(is_answered(to).unwrap(), "before");
    let before = serve.peak();
    let began: [Vec<u8>; 3] =
        [greeting(), [greeting(), frame(HEADERS, END_HEADERS, 1, &asks(METHODS[0]), None)].concat(), vec![0]];
    let slow: Vec<_> = (0..12)
        .map(|n| {
            let bytes = began[n % began.len()].clone();
            let (others, done) = mpsc::channel();
            (others, thread::spawn(move || slow(to, &bytes, &done)))
        })
        .collect();
    for round in 0..rounds {
        for (name, attack) in ATTACKS {
            let mut random = Random(seed.wrapping_add(round));
            // The process may close invalid connections, and refuse more connections of one address.
            drop(attack(to, &mut random));
            let told = is_answered(to);
            assert!(told.as_ref().is_ok_and(|answered| *answered), "after {name}, seed {}: {told:?}", seed + round);
            let ended = serve.child.try_wait().unwrap();
            assert!(ended.is_none(), "after {name}, seed {}: {ended:?}", seed + round);
        }
    }
    for (others, thread) in slow {
        drop(others);
        thread.join().unwrap();
    }
    assert!(is_answered(to).unwrap(), "afterwards");
    assert_eq!(serve.child.id(), pid);
    println!("{rounds} rounds from seed {seed}: {} MiB before, {} MiB at most", before >> 10, serve.peak() >> 10);
    let stopped = Command::new("kill").args(["-TERM", &pid.to_string()]).status().unwrap();
    assert!(stopped.success() && serve.child.wait().unwrap().success(), "it ends in order");
}
