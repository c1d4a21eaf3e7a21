//! A curl command: the few options that the tour uses, sent over a plain socket to whatever address the gateway has.

use std::net::SocketAddr;
use std::process;

use testkit::http::{ReceivedReply, TestConnection};

use super::output;

const BASE: &str = "http://127.0.0.1:8545";

#[derive(Debug, Default)]
pub(crate) struct Command {
    /// The command before `| curl`, which makes the body.
    body_maker: Option<String>,
    method: Option<String>,
    path: String,
    headers: Vec<String>,
    body: Option<String>,
    /// The template that `-w` has curl write after the body.
    write_out: Option<String>,
    discard_body: bool,
}

impl Command {
    pub(crate) fn read(text: &str) -> Self {
        let text = text.replace("\\\n", " ");
        let (maker, curl) = match text.split_once("| curl ") {
            Some((maker, curl)) => (Some(maker.to_owned()), curl),
            None => (None, text.strip_prefix("curl ").unwrap_or_else(|| panic!("no curl command: {text}"))),
        };
        let mut command = Self { body_maker: maker, ..Self::default() };
        let mut words = words(curl).into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
            match word.as_str() {
                "-s" => {}
                "-X" => command.method = Some(value()),
                "-H" => command.headers.push(value()),
                "-d" => command.body = Some(value()),
                "-w" => command.write_out = Some(value()),
                "-o" => command.discard_body = value() == "/dev/null",
                url => {
                    command.path =
                        url.strip_prefix(BASE).unwrap_or_else(|| panic!("what is {url}?")).to_owned();
                }
            }
        }
        command
    }

    /// Sends the request, and returns the output of curl as the page shows it.
    pub(crate) fn run(&self, gateway: SocketAddr) -> String {
        let reply = TestConnection::connect(gateway).send(self.request()).reply();
        assert!(
            self.write_out.is_some() || reply.status == 200,
            "a status that the page does not show: {reply:?}"
        );
        let mut shown = String::new();
        if !self.discard_body && !reply.body.is_empty() {
            shown = output::show(reply.text());
        }
        if let Some(template) = &self.write_out {
            shown.push_str(fill(template, &reply).trim_start_matches('\n'));
        }
        shown
    }

    fn request(&self) -> Vec<u8> {
        let body = self.body();
        let method = self.method.as_deref().unwrap_or(if self.body.is_some() { "POST" } else { "GET" });
        let mut head = format!("{method} {} HTTP/1.1\r\nhost: tour\r\n", self.path);
        for header in &self.headers {
            head += &format!("{header}\r\n");
        }
        if let Some(body) = &body {
            head += &format!("content-length: {}\r\n", body.len());
        }
        format!("{head}\r\n{}", body.unwrap_or_default()).into_bytes()
    }

    fn body(&self) -> Option<String> {
        let Some(maker) = &self.body_maker else { return self.body.clone() };
        assert_eq!(self.body.as_deref(), Some("@-"), "what is piped to curl is its body");
        let made = process::Command::new("sh").args(["-c", maker]).output().unwrap();
        assert!(made.status.success(), "{maker}: {made:?}");
        // curl, too, leaves out the ends of lines.
        Some(String::from_utf8(made.stdout).unwrap().replace('\n', ""))
    }
}

/// The words of a command line in which only single quotes are special.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (place, part) in line.split('\'').enumerate() {
        match place % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// Fills in a template of `-w`: `%{http_code}`, `%header{name}` and ends of lines.
fn fill(template: &str, reply: &ReceivedReply) -> String {
    let mut text = template.replace("\\n", "\n").replace("%{http_code}", &reply.status.to_string());
    while let Some((before, rest)) = text.split_once("%header{") {
        let (name, after) = rest.split_once('}').expect("a header's name ends");
        text = format!("{before}{}{after}", reply.header(name).unwrap_or_default());
    }
    text
}
