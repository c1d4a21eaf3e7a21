use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use callers::Plans;
use callers::administration::{Administration, KeyCreation};
use callers::people::{LinkForm, NewSession, People, SignUp, Visitor};
use console::{ConsoleServer, ConsoleSettings, ConsoleSite, LiveSource, MethodForm, SignUpMode, SiteFacts};
use futures_util::{StreamExt, stream};
use gateway::GatewaySnapshot;
use resources::Supervisor;
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use store::{Store, StoreLocation};
use tempfile::TempDir;

use crate::browser::Browser;

pub(crate) const PASSWORD: &str = "correct horse";

/// A console on a store of its own. Other people change the store beside it, as commands do.
pub(crate) struct ConsoleUnderTest {
    server: Option<ConsoleServer>,
    pub(crate) address: SocketAddr,
    pub(crate) people: People,
    pub(crate) administration: Arc<Administration>,
    runtime: tokio::runtime::Runtime,
    folder: TempDir,
    pub(crate) supervisor: Supervisor,
}

pub(crate) fn settings() -> ConsoleSettings {
    ConsoleSettings {
        url: None,
        public_url: None,
        sign_up: SignUpMode::Open,
        sign_up_plan: "developer".to_owned(),
    }
}

impl ConsoleUnderTest {
    pub(crate) fn start() -> Self {
        Self::with(&settings())
    }

    pub(crate) fn with(settings: &ConsoleSettings) -> Self {
        Self::of(settings, GatewaySnapshot::default())
    }

    /// The console of a gateway that stays as it is.
    pub(crate) fn of(settings: &ConsoleSettings, gateway: GatewaySnapshot) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let location = StoreLocation::in_data_dir(folder.path());
        let administration = || Administration::new(Store::new(location.clone()), Plans::default());
        let method = MethodForm {
            name: "eth_blockNumber".to_owned(),
            summary: "the number of the newest block".to_owned(),
            credits: 80,
            params: Vec::new(),
        };
        let facts = SiteFacts {
            network: "demo".to_owned(),
            base_url: "http://127.0.0.1:8545/v3/".to_owned(),
            example_key: None,
            methods: vec![method],
            config_file: None,
            configuration: Vec::new(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let clients = Box::new(|peer: SocketAddr, _: &http::HeaderMap| peer.ip());
        let supervisor = Supervisor::default();
        let changes = Box::new(|| stream::pending().boxed());
        let live = LiveSource { snapshot: Box::new(move || gateway.clone()), changes };
        let site =
            ConsoleSite::new(settings, address, administration(), facts, live, clients, supervisor.clone());
        let server = ConsoleServer::start(listener, site).unwrap();
        let administration = Arc::new(administration());
        Self {
            server: Some(server),
            address,
            people: People::new(
                Arc::clone(&administration),
                SignUp::Open { plan: "developer".to_owned() },
                Supervisor::default(),
            ),
            administration,
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            folder,
            supervisor,
        }
    }

    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub(crate) fn browser(&self) -> Browser {
        Browser::new(self.address)
    }

    /// A developer with an account of their own.
    pub(crate) fn developer(&self, name: &str) -> Browser {
        let email = format!("{name}@example.com");
        let signed_up = self.run(self.people.sign_up(&email, PASSWORD, name, &visitor()));
        Browser::with_session(self.address, &signed_up.unwrap().token)
    }

    pub(crate) fn operator(&self) -> Browser {
        Browser::with_session(self.address, &self.operator_session().token)
    }

    fn operator_session(&self) -> NewSession {
        self.run(async {
            let link = self.people.create_operator_link("test").await.unwrap();
            let form = LinkForm {
                email: "root@example.com".to_owned(),
                account: String::new(),
                password: PASSWORD.to_owned(),
            };
            self.people.use_link(&link.token, &form, &visitor()).await.unwrap()
        })
    }

    /// A key of an account; returns its handle.
    pub(crate) fn key(&self, account: &str, name: &str) -> String {
        let creation =
            KeyCreation { account: account.to_owned(), name: name.to_owned(), ..KeyCreation::default() };
        self.run(self.administration.create_key("test", &creation)).unwrap().made.summary.id
    }

    /// Lets the store sum up the rows of usage that were inserted without their sums, as it does with those of an earlier version.
    pub(crate) fn sum_up_usage(&self) {
        self.execute("INSERT INTO usage_fills (step, account, starts_at) VALUES ('minute', '', 0), ('hour', '', 0), ('day', '', 0)");
        self.execute(include_str!("../../../store/src/migrations/7.sql"));
    }

    /// Executes statements on the store, as an operator with a tool for SQLite could.
    pub(crate) fn execute(&self, statements: &'static str) {
        let options = SqliteConnectOptions::new().filename(self.folder.path().join("callers.sqlite"));
        self.run(async {
            let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
            sqlx::raw_sql(statements).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        });
    }
}

impl Drop for ConsoleUnderTest {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

pub(crate) fn visitor() -> Visitor {
    Visitor { address: [192, 0, 2, 1].into(), browser: "Firefox/1".to_owned() }
}
