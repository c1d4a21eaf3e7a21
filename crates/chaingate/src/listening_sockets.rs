//! The listening sockets: opened here, or inherited from a service manager or from the gateway that ran before.

use std::net::{SocketAddr, TcpListener};

use gateway::GatewaySockets;
use http_server::{adopt, bind, bind_workers, check_free};
use listenfd::ListenFd;

use crate::config::Config;

/// The listener that a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenerPurpose {
    Public,
    Operator,
    Console,
}

impl ListenerPurpose {
    const ALL: [Self; 3] = [Self::Public, Self::Operator, Self::Console];

    /// The key in `[listen]`, which is also its name in the units of a service manager.
    fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Operator => "operator",
            Self::Console => "console",
        }
    }

    /// Where the configuration puts it.
    fn address(self, config: &Config) -> Option<SocketAddr> {
        match self {
            Self::Public => Some(config.listen.server.public),
            Self::Operator => Some(config.listen.operator.address),
            Self::Console => config.console_address.preferred(),
        }
    }

    /// The byte for it in a hand-over.
    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::Public => b'p',
            Self::Operator => b'o',
            Self::Console => b'c',
        }
    }

    pub(crate) fn of_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.byte() == byte)
    }
}

/// Listening sockets that another process has opened.
#[derive(Debug, Default)]
pub(crate) struct InheritedSockets {
    sockets: Vec<(ListenerPurpose, TcpListener)>,
    /// Whether they stay open elsewhere when this process ends.
    pub(crate) are_shared: bool,
}

impl InheritedSockets {
    /// Those that a service manager passes to this process (`LISTEN_FDS`). Must be called before any thread is started, because it
    /// changes the environment.
    pub(crate) fn from_service_manager(config: &Config) -> Result<Self, String> {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let (mut passed, mut names) = (ListenFd::from_env(), names.split(':'));
        let mut inherited = Self { are_shared: passed.len() > 0, ..Self::default() };
        for index in 0..passed.len() {
            let failed = |why: String| format!("socket {} of the service manager: {why}", index + 1);
            let socket = passed.take_tcp_listener(index).map_err(|error| failed(error.to_string()))?;
            let (socket, name) = (socket.ok_or_else(|| failed("it is not open".to_owned()))?, names.next());
            let address = socket.local_addr().map_err(|error| failed(error.to_string()))?;
            let purpose = purpose(name.unwrap_or_default(), address, config).map_err(failed)?;
            inherited.add(purpose, socket)?;
        }
        Ok(inherited)
    }

    pub(crate) fn add(&mut self, purpose: ListenerPurpose, socket: TcpListener) -> Result<(), String> {
        adopt(&socket).map_err(|error| format!("the inherited socket `{}`: {error}", purpose.name()))?;
        self.sockets.push((purpose, socket));
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// Raises the number of workers, so that each socket for callers has one that accepts from it.
    pub(crate) fn raise_workers(&self, config: &mut Config) {
        let public = self.sockets.iter().filter(|(purpose, _)| *purpose == ListenerPurpose::Public).count();
        let workers = &mut config.listen.server.workers;
        *workers = public.max(*workers);
    }

    fn take(&mut self, purpose: ListenerPurpose, config: &Config) -> Vec<TcpListener> {
        let taken = self.sockets.extract_if(.., |(of, _)| *of == purpose);
        let taken: Vec<_> = taken.map(|(_, socket)| socket).collect();
        let inherited = taken.first().and_then(|socket| socket.local_addr().ok());
        if let Some((inherited, configured)) = inherited.zip(purpose.address(config))
            && configured.port() != 0
            && configured != inherited
        {
            tracing::warn!(
                %inherited, %configured, listener = purpose.name(),
                "the inherited socket has another address than the configuration, which takes effect after a stop and a start"
            );
        }
        taken
    }

    /// The socket of the console, if it was inherited and there is to be a console.
    pub(crate) fn console(&mut self, config: &Config) -> Option<TcpListener> {
        config.console_address.preferred()?;
        self.take(ListenerPurpose::Console, config).pop()
    }

    /// These sockets for callers and the operator, and new ones for those that are missing.
    pub(crate) fn complete(mut self, config: &Config) -> std::io::Result<GatewaySockets> {
        let mut public = self.take(ListenerPurpose::Public, config);
        let mut operator = self.take(ListenerPurpose::Operator, config);
        let listen = &config.listen;
        if public.is_empty() && operator.is_empty() {
            return GatewaySockets::bind(listen);
        }
        if public.is_empty() {
            public = bind_workers(listen.server.public, listen.server.workers)?;
        }
        let operator = match operator.pop() {
            Some(operator) => operator,
            None => check_free(listen.operator.address).and_then(|()| bind(listen.operator.address))?,
        };
        Ok(GatewaySockets { public, operator, are_shared: self.are_shared })
    }
}

/// The listener that a socket of a service manager is for, by its name or else its address.
fn purpose(name: &str, address: SocketAddr, config: &Config) -> Result<ListenerPurpose, String> {
    let named = ListenerPurpose::ALL.into_iter().find(|purpose| purpose.name() == name);
    let at_address =
        || ListenerPurpose::ALL.into_iter().find(|purpose| purpose.address(config) == Some(address));
    named.or_else(at_address).ok_or_else(|| {
        format!(
            "it is called `{name}` and has the address {address}, which is neither that of callers, nor of the operator, nor of the \
             console; name it with FileDescriptorName=public, operator or console, or write its address into [listen]"
        )
    })
}

/// The listening sockets of a gateway that runs.
#[derive(Debug)]
pub(crate) struct ListeningSockets {
    pub(crate) gateway: GatewaySockets,
    pub(crate) console: Option<TcpListener>,
}

impl ListeningSockets {
    pub(crate) fn new(gateway: GatewaySockets, console: Option<&TcpListener>) -> std::io::Result<Self> {
        Ok(Self { gateway, console: console.map(TcpListener::try_clone).transpose()? })
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = (ListenerPurpose, &TcpListener)> {
        let public = self.gateway.public.iter().map(|socket| (ListenerPurpose::Public, socket));
        let operator = std::iter::once((ListenerPurpose::Operator, &self.gateway.operator));
        let console = self.console.iter().map(|socket| (ListenerPurpose::Console, socket));
        public.chain(operator).chain(console)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_a_service_manager_is_known_by_its_name_or_its_address() {
        let config = Config::parse("[listen]\nconsole = \"off\"\n").unwrap();
        for (name, address, expected) in [
            ("public", "10.0.0.1:80", Some(ListenerPurpose::Public)),
            ("console", "127.0.0.1:9", Some(ListenerPurpose::Console)),
            ("chaingate.socket", "127.0.0.1:8545", Some(ListenerPurpose::Public)),
            ("", "127.0.0.1:8546", Some(ListenerPurpose::Operator)),
            ("operator", "127.0.0.1:8545", Some(ListenerPurpose::Operator)),
            ("chaingate.socket", "127.0.0.1:8547", None),
        ] {
            let found = purpose(name, address.parse().unwrap(), &config);
            assert_eq!(found.as_ref().ok().copied(), expected, "{name} {address}: {found:?}");
        }
    }

    #[test]
    fn each_socket_for_callers_has_a_worker() {
        let mut inherited = InheritedSockets::default();
        for _ in 0..3 {
            inherited.add(ListenerPurpose::Public, TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
        }
        for (workers, raised) in [(1, 3), (4, 4)] {
            let mut config = Config::parse(&format!("[listen]\nworkers = {workers}\n")).unwrap();
            inherited.raise_workers(&mut config);
            assert_eq!(config.listen.server.workers, raised);
        }
        let sockets = inherited.complete(&Config::parse("[listen]\noperator = \"127.0.0.1:0\"\n").unwrap());
        assert_eq!(sockets.unwrap().public.len(), 3);
    }
}
