//! Input that is nearly right: calls as clients send them, with something odd done to them. The same number always gives
//! the same input.

use methods::METHODS;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// Makes one case.
pub struct Maker(SmallRng);

/// Calls that have an answer on the demo chain, besides the examples of all methods.
const CALLS: &[(&str, &str)] = &[
    ("eth_syncing", "null"),
    ("eth_feeHistory", r#"["0x5","latest",[10,50.5,90]]"#),
    ("eth_getBalance", r#"["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","0x10"]"#),
    ("eth_getCode", r#"["0x93C7a6D00849c44Ef3E92E95DCEFfccd447909Ae",{"blockNumber":"0xff"}]"#),
    ("eth_getTransactionCount", r#"["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","earliest"]"#),
    ("eth_getBlockByNumber", r#"["0x60",true]"#),
    ("eth_getBlockTransactionCountByNumber", r#"["finalized"]"#),
    (
        "eth_getLogs",
        r#"[{"fromBlock":"0x0","toBlock":"0xa0","address":["0x93C7a6D00849c44Ef3E92E95DCEFfccd447909Ae"],"topics":[null,[]]}]"#,
    ),
    (
        "eth_getLogs",
        r#"[{"blockHash":"0x59e710980827cba05123a2c453c7845674b380e9c27257db55b524314012a017","topics":[["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"]]}]"#,
    ),
    (
        "eth_call",
        r#"[{"to":"0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0","gas":"0x5208","value":"0x0"},"0x78",{"0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0":{"code":"0x5b5f56","balance":"0x1","stateDiff":{"0x0000000000000000000000000000000000000000000000000000000000000000":"0x0000000000000000000000000000000000000000000000000000000000000001"}}},{"number":"0x1","baseFeePerGas":"0x7"}]"#,
    ),
    (
        "eth_estimateGas",
        r#"[{"from":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","to":"0x70997970C51812dc3A010C7d01b50e0d17dc79C8","value":"0x1","accessList":[],"maxFeePerGas":"0x77359400"}]"#,
    ),
];

/// Pieces of JSON that parsers have stumbled over.
const ODD: &[&str] = &[
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "0",
    "-0",
    "1e999",
    "1.0",
    "18446744073709551616",
    "-1",
    "[[[[[[[[",
    "]]",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"\\ud83d\\ude00\"",
    "\u{feff}",
    "\"0x\"",
    "\"0x0\"",
    "\"0x00\"",
    "\"0xG\"",
    "\"0xffffffffffffffff\"",
    "\"0x8000000000000000\"",
    "\"0x7fffffffffffffff\"",
    "\"latest\"",
    "\"pending\"",
    "\"safe\"",
    "\"earliest\"",
    ",",
    ":",
    "\\",
    "\"",
    "\r\n",
    "\t",
    "\0",
    "é",
    "\"id\":1,",
    "\"method\":\"eth_call\",",
    "{\"blockHash\":null}",
    "{\"blockNumber\":\"0x1\",\"blockHash\":\"0x1\"}",
    "[null,null,null,null,null]",
];

/// Lines of a head; some are as clients send them, some are what readers have disagreed on.
const LINES: &[&str] = &[
    "host: x",
    "Host: localhost:8545",
    "connection: close",
    "connection: keep-alive",
    "Connection: upgrade",
    "upgrade: h2c",
    "content-type: application/json",
    "expect: 100-continue",
    "accept: */*",
    "content-length: 5",
    "Content-Length:5 ",
    "content-length: 0",
    "content-length: +5",
    "content-length: 5, 5",
    "content-length: 5 5",
    "content-length: 0x5",
    "content-length: 005",
    "content-length : 5",
    "content-length: 18446744073709551616",
    "transfer-encoding: chunked",
    "Transfer-Encoding:\tchunked",
    "transfer-encoding: chunked, chunked",
    "transfer-encoding: identity",
    "transfer-encoding: gzip, chunked",
    "transfer-encoding : chunked",
    "transfer-encoding: xchunked",
    "x: y\r\n folded",
    "x: y\r\n\tcontent-length: 5",
    " content-length: 5",
    "x: \u{b}chunked",
    "x: y\rcontent-length: 5",
    "x: y\ncontent-length: 5",
    "no colon",
    ": no name",
    "x y: z",
    "host: a b",
];

const REQUEST_LINES: &[&str] = &[
    "POST /v3/demo HTTP/1.1",
    "GET / HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "POST http://x/v3/demo HTTP/1.1",
    "POST /v3/demo HTTP/1.0",
    "POST  /v3/demo HTTP/1.1",
    "POST /v3/demo HTTP/1.1 ",
    "POST /v3/demo HTTP/2.0",
    "\r\nPOST /v3/demo HTTP/1.1",
    "PRI * HTTP/2.0",
];

const BODIES: &[&str] = &[
    "",
    "hello",
    "5\r\nhello\r\n0\r\n\r\n",
    "5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n",
    "05\r\nhello\r\n00\r\n\r\n",
    "5 \r\nhello\r\n0\r\n\r\n",
    "5;\r\nhello\r\n0\r\n\r\n",
    "5;a\rb\r\nhello\r\n0\r\n\r\n",
    "5\nhello\n0\n\n",
    "5\r\nhello0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    "-5\r\nhello\r\n0\r\n\r\n",
    "10000000000000005\r\nhello\r\n0\r\n\r\n",
    "0\r\nno colon\r\n\r\n",
    "0\r\n folded: x\r\n\r\n",
    "0\r\nx: y\rz\r\n\r\n",
    "0\r\n",
];

/// Pieces at which readers of HTTP have stumbled.
const ODD_HTTP: &[&str] = &[
    "\r\n",
    "\n",
    "\r",
    "\r\n\r\n",
    "\n\n",
    "\0",
    " ",
    "\t",
    ":",
    ";",
    ",",
    "0",
    "0\r\n\r\n",
    "chunked",
    "5\r\n",
    "\u{b}",
    "\u{85}",
    "\u{a0}",
    "_",
    "GET / HTTP/1.1\r\nhost: x\r\n\r\n",
];

/// Instructions that make programs do something: pushes, a call to oneself, a creation, a loop, memory far away.
const PIECES: &[&[u8]] = &[
    &[0x5f],
    &[0x60, 0x20],
    &[0x61, 0xff, 0xff],
    &[0x63, 0xff, 0xff, 0xff, 0xff],
    &[0x5f, 0x5f, 0x5f, 0x5f, 0x5f, 0x30, 0x5a, 0xf1],
    &[0x38, 0x5f, 0x5f, 0x39, 0x38, 0x5f, 0x5f, 0xf0],
    &[0x5b, 0x5f, 0x56],
    &[0x59, 0x5f, 0xfd],
    &[0x5f, 0x5f, 0x61, 0xff, 0xff, 0x5f, 0x60, 0x05, 0x5a, 0xfa],
    &[0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x4a],
    &[0x5f, 0x54, 0x5f, 0x55],
    &[0x5f, 0xff],
];

impl Maker {
    /// The maker of the case with this number.
    pub fn new(number: u64) -> Self {
        Self(SmallRng::seed_from_u64(number))
    }

    /// The body of a request, more often nearly right than not.
    pub fn body(&mut self) -> Vec<u8> {
        let mut body = if self.0.random_ratio(1, 8) { self.batch() } else { self.call() }.into_bytes();
        let changes = [0, 0, 0, 0, 0, 0, 1, 1, 2, 12];
        for _ in 0..self.pick(&changes) {
            self.change(&mut body, ODD);
        }
        body
    }

    fn call(&mut self) -> String {
        let (method, params) = self.known_call();
        let odd = self.pick(ODD);
        let (method, params) = match self.0.random_range(0..12) {
            0 => (odd.trim_matches('"'), params.to_owned()),
            1 => (method, odd.to_owned()),
            2 => (method, format!("[{odd},{odd}]")),
            3 => (self.known_call().0, params.to_owned()),
            4..8 => (method, self.with_odd_value(params)),
            _ => (method, params.to_owned()),
        };
        let id = if self.0.random_ratio(1, 6) { odd } else { "7" };
        match self.0.random_range(0..10) {
            0 => format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#),
            1 => format!(r#" {{ "params" : {params} , "method":"{method}", "id": {id},"jsonrpc":"2.0" }} "#),
            2 => format!(r#"{{"jsonrpc":"2.0","id":{id},"meth\u006fd":"{method}","params":{params}}}"#),
            _ => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#),
        }
    }

    fn known_call(&mut self) -> (&'static str, &'static str) {
        let at = self.0.random_range(0..CALLS.len() + METHODS.len());
        let example = || METHODS.get(at - CALLS.len()).map(|method| (method.name, method.example));
        CALLS.get(at).copied().or_else(example).expect("the index is within both tables")
    }

    /// One of the strings in it becomes something else.
    fn with_odd_value(&mut self, params: &str) -> String {
        let mut parts: Vec<&str> = params.split('"').collect();
        if parts.len() < 3 {
            return params.to_owned();
        }
        let place = self.0.random_range(0..parts.len() / 2) * 2 + 1;
        parts[place] = self.pick(ODD).trim_matches('"');
        parts.join("\"")
    }

    fn batch(&mut self) -> String {
        let calls: Vec<_> = (0..self.0.random_range(0..6)).map(|_| self.call()).collect();
        format!("[{}]", calls.join(","))
    }

    /// What one connection sends: some requests, more often nearly right than not.
    pub fn connection(&mut self) -> Vec<u8> {
        let requests: Vec<_> = (0..self.0.random_range(1..4)).map(|_| self.http_request()).collect();
        let mut bytes = requests.concat().into_bytes();
        for _ in 0..self.pick(&[0, 0, 0, 1, 1, 2, 6]) {
            self.change(&mut bytes, ODD_HTTP);
        }
        bytes
    }

    fn http_request(&mut self) -> String {
        let first = if self.0.random_ratio(3, 4) { REQUEST_LINES[0] } else { self.pick(REQUEST_LINES) };
        let framing = self.0.random_range(0..4);
        let (mut lines, body) = match framing {
            0 => (vec!["host: x", "content-length: 5"], "hello"),
            1 => (vec!["host: x", "transfer-encoding: chunked"], self.pick(BODIES)),
            2 => (vec!["host: x"], ""),
            _ => (vec!["host: x"], self.pick(BODIES)),
        };
        for _ in 0..self.pick(&[0, 0, 1, 1, 2, 3]) {
            let at = self.0.random_range(0..=lines.len());
            lines.insert(at, self.pick(LINES));
        }
        format!("{first}\r\n{}\r\n\r\n{body}", lines.join("\r\n"))
    }

    fn change(&mut self, body: &mut Vec<u8>, odd: &[&str]) {
        let at = self.0.random_range(0..=body.len());
        let end = (at + self.0.random_range(0..24)).min(body.len());
        match self.0.random_range(0..6) {
            0 => body.insert(at, self.0.random()),
            1 => drop(body.drain(at..end)),
            2 => drop(body.splice(at..at, self.pick(odd).bytes())),
            3 => {
                let copy = body[at..end].to_vec();
                drop(body.splice(at..at, copy));
            }
            4 => body.truncate(at),
            _ => {
                if let Some(byte) = body.get_mut(at) {
                    *byte ^= 1 << self.0.random_range(0..8);
                }
            }
        }
    }

    /// The input of [`evm`](super::evm).
    pub fn program(&mut self) -> Vec<u8> {
        let mut input = if self.0.random_ratio(1, 4) { self.bytes(4..60) } else { self.plain_message() };
        // With something on the stack, more than the first instruction gets its turn.
        for _ in 0..self.0.random_range(0..16) {
            input.extend_from_slice(&[0x60, self.0.random()]);
        }
        for _ in 0..self.0.random_range(0..200) {
            match self.0.random_range(0..4) {
                0 => input.extend_from_slice(self.pick(PIECES)),
                1 => input.extend_from_slice(&[0x60, self.0.random()]),
                2 => input.push(self.0.random_range(0x80..0xa0)),
                _ => input.push(self.0.random()),
            }
        }
        input
    }

    /// The part before the program: any block, a call or a creation, nothing overridden, no fees, as much code as goes.
    fn plain_message(&mut self) -> Vec<u8> {
        let (block, estimates) = (self.0.random(), u8::from(self.0.random_ratio(1, 4)));
        match self.0.random_range(0..6) {
            0 => vec![block, estimates, 0, 0, 0, 255],
            1 => vec![block, estimates, 1, self.0.random_range(0..24), 0, 0, 0],
            2 => vec![block, estimates, 2 | 32, 0, self.0.random(), 1, 1, 1, 1, 0, 255],
            _ => vec![block, estimates, 2, 0, 0, 255],
        }
    }

    fn bytes(&mut self, len: std::ops::Range<usize>) -> Vec<u8> {
        (0..self.0.random_range(len)).map(|_| self.0.random()).collect()
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        *among.choose(&mut self.0).expect("there is something to choose from")
    }
}
