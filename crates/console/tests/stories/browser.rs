use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use testkit::http::{ReceivedReply, TestConnection};

/// A browser: it keeps cookies and sends forms.
#[derive(Clone, Debug)]
pub(crate) struct Browser {
    address: SocketAddr,
    cookies: Vec<(String, String)>,
    /// Header lines that are sent with every request.
    pub(crate) headers: Vec<String>,
}

impl Browser {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, cookies: Vec::new(), headers: Vec::new() }
    }

    /// A browser in which somebody is signed in.
    pub(crate) fn with_session(address: SocketAddr, token: &str) -> Self {
        let mut browser = Self::new(address);
        browser.set_cookie("chaingate", token);
        browser
    }

    pub(crate) fn set_cookie(&mut self, name: &str, value: &str) {
        self.cookies.retain(|(known, _)| known != name);
        self.cookies.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn get(&mut self, path: &str) -> ReceivedReply {
        self.send("GET", path, "")
    }

    /// Sends a form of the page at `page`, with the token of that page.
    pub(crate) fn post_from(&mut self, page: &str, path: &str, fields: &str) -> ReceivedReply {
        let csrf = self.csrf(page);
        self.send("POST", path, &format!("csrf={csrf}&{fields}"))
    }

    /// The token of the first form of a page.
    pub(crate) fn csrf(&mut self, page: &str) -> String {
        let reply = self.get(page);
        let (_, rest) = reply
            .text()
            .split_once("name=\"csrf\" value=\"")
            .unwrap_or_else(|| panic!("{page}: no form: {}", reply.status));
        rest.split('"').next().unwrap().to_owned()
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, body: &str) -> ReceivedReply {
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !self.headers.iter().any(|line| line.starts_with("host:")) {
            head += &format!("host: {}\r\n", self.address);
        }
        for line in &self.headers {
            head += &format!("{line}\r\n");
        }
        if !self.cookies.is_empty() {
            let cookies: Vec<_> =
                self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            head += &format!("cookie: {}\r\n", cookies.join("; "));
        }
        if method == "POST" {
            head += &format!(
                "content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n",
                body.len()
            );
        }
        let reply = TestConnection::connect(self.address).send(format!("{head}\r\n{body}")).reply();
        for (_, cookie) in reply.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            self.set_cookie(name, value);
        }
        reply
    }
}

impl Browser {
    /// The head of a reply whose body does not end.
    pub(crate) fn head_of(&self, path: &str) -> ReceivedReply {
        let mut lines = self.lines_of(path);
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.take_while(|line| !line.is_empty()).map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        });
        ReceivedReply { status, headers: headers.collect(), body: Vec::new() }
    }

    /// The lines of a reply, until it ends.
    pub(crate) fn lines_of(&self, path: &str) -> impl Iterator<Item = String> + use<> {
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (host, cookies) = (self.address, cookies.join("; "));
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\ncookie: {cookies}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream).lines().map_while(Result::ok)
    }
}
