//! Nodes that lie to a gateway: every lie, told by every mix of nodes, compared with the truth of an embedded chain.

mod chains;
mod table;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;

use clap::{Args, ValueEnum};
use testkit::forgery::Forgery;
use testkit::matrix::{
    CellReport, Course, NodeLie, NodeMix, RunningGateway, StateTrust, TrueChain, run_cell, run_honest,
};
use testkit::proofs::ProofLie;

use crate::gateway::{GatewayProcess, GatewayStart, HONEST_KEY, LogTarget};
use chains::LieChains;

/// Times that a gateway is started anew when another program has taken its port in between.
const STARTS_MAX: u32 = 5;

/// The progress is printed once per this many cells.
const CELLS_PER_LINE: usize = 50;

#[derive(Debug, Args)]
pub(crate) struct LieArguments {
    /// Calls in front of liars, over all lies and mixes of nodes.
    #[arg(long, default_value_t = 200_000)]
    calls: usize,

    /// Calls in front of honest nodes.
    #[arg(long, default_value_t = 80_000)]
    honest_calls: usize,

    /// Only lies with this in their names.
    #[arg(long)]
    only: Option<String>,

    /// Only mixes of nodes with this in their names, such as `1 of 3`.
    #[arg(long)]
    mix: Option<String>,

    /// How the gateway verifies state; without it, the configuration says nothing, and state may be wrong.
    #[arg(long)]
    state: Option<StateOption>,

    /// A file with further configuration of the gateway.
    #[arg(long)]
    config: Option<PathBuf>,

    /// Gateways that are tried at once.
    #[arg(long, default_value_t = 2)]
    at_once: usize,

    /// The gateway's program.
    #[arg(long, default_value = "target/release/chaingate")]
    gateway: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum StateOption {
    Trust,
    Confirm,
    Prove,
}

/// One cell that is to be run.
struct LieCell<'a> {
    chain: &'a TrueChain,
    lie: NodeLie,
    mix: NodeMix,
}

/// Settings and progress that all cells share.
struct LieRun<'a> {
    program: &'a Path,
    folder: &'a Path,
    config: String,
    /// The genesis of the chain whose state is proven.
    rules: &'a Path,
    trust: StateTrust,
    started: AtomicU64,
    progress: MatrixProgress,
}

pub(crate) fn run(arguments: &LieArguments, folder: &Path) -> ExitCode {
    match try_run(arguments, folder) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all cells and prints their tables. Returns whether no gateway crossed a line.
fn try_run(arguments: &LieArguments, folder: &Path) -> io::Result<bool> {
    let chains = LieChains::start(&arguments.gateway, folder)?;
    let further = arguments.config.as_ref().map(fs::read_to_string).transpose()?.unwrap_or_default();
    let (trust, integrity) = match arguments.state {
        None => (StateTrust::Trusted, ""),
        Some(StateOption::Trust) => (StateTrust::Trusted, "[integrity]\nstate = \"trust\"\n"),
        Some(StateOption::Confirm) => (StateTrust::Confirmed, "[integrity]\nstate = \"confirm\"\n"),
        Some(StateOption::Prove) => (StateTrust::Proven, "[integrity]\nstate = \"prove\"\n"),
    };
    let run = LieRun {
        program: &arguments.gateway,
        folder,
        config: format!("{integrity}{further}"),
        rules: &chains.long_genesis,
        trust,
        started: AtomicU64::new(0),
        progress: MatrixProgress::default(),
    };
    let cells = cells(&chains, arguments, trust);
    let per_cell = arguments.calls.div_ceil(cells.len().max(1) * 2);
    println!("{} lies x mixes, {} calls each while nodes lie and again after it", cells.len(), per_cell);
    let mut reports = run.all(&cells, per_cell, arguments.at_once);
    if arguments.only.is_none() {
        reports.extend(run.honest(&chains, arguments.honest_calls));
    }
    Ok(table::print(&reports))
}

fn cells<'a>(chains: &'a LieChains, arguments: &LieArguments, trust: StateTrust) -> Vec<LieCell<'a>> {
    let is_wanted = |name: &str, part: &Option<String>| {
        part.as_ref().is_none_or(|part| name.to_ascii_lowercase().contains(&part.to_ascii_lowercase()))
    };
    let mut cells = Vec::new();
    let mixes = || NodeMix::ALL.into_iter().filter(|mix| is_wanted(mix.name, &arguments.mix));
    for mix in mixes() {
        for chain in chains.of(trust) {
            let lies = Forgery::ALL.iter().map(|forgery| NodeLie::from(*forgery));
            cells.extend(lies.map(|lie| LieCell { chain, lie, mix }));
        }
        let proof_lies = ProofLie::ALL.iter().filter(|_| trust == StateTrust::Proven);
        cells.extend(proof_lies.map(|lie| LieCell { chain: &chains.long, lie: NodeLie::from(*lie), mix }));
        let lies =
            chain_lies(chains).into_iter().filter(|lie| lie.course == Course::Beside || mix.honest_decide());
        cells.extend(lies.map(|lie| LieCell { chain: &chains.long, lie, mix }));
    }
    cells.retain(|cell| is_wanted(&cell.lie.name, &arguments.only));
    cells
}

/// Lies about the identity of the chain, and lies while the honest nodes are away.
fn chain_lies(chains: &LieChains) -> Vec<NodeLie> {
    let fork = || NodeLie::other_chain("Fork", chains.fork);
    let other = || NodeLie::other_chain("OtherChain", chains.demo.node);
    vec![
        fork(),
        fork().during(Course::LiarsFirst),
        fork().during(Course::OnlyLiarsLeft),
        other(),
        other().during(Course::LiarsFirst),
        other().during(Course::OnlyLiarsLeft),
        NodeLie::other_depths("OldFork", chains.fork, chains::OLD_BELOW),
        NodeLie::from(Forgery::ChainId).during(Course::LiarsFirst),
        NodeLie::from(Forgery::Genesis).during(Course::LiarsFirst),
        NodeLie::from(Forgery::HeadForged).during(Course::OnlyLiarsLeft),
        NodeLie::from(Forgery::NoTransactions).during(Course::OnlyLiarsLeft),
        NodeLie::from(Forgery::StorageValue).during(Course::OnlyLiarsLeft),
        NodeLie::from(Forgery::CallResult).during(Course::LiarsFirst),
    ]
}

impl LieRun<'_> {
    /// Runs cells, `at_once` of them in parallel, and returns their reports in order.
    fn all(&self, cells: &[LieCell<'_>], calls: usize, at_once: usize) -> Vec<CellReport> {
        let (next, reports) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for _ in 0..at_once.max(1) {
                scope.spawn(|| {
                    while let Some((index, cell)) = take(cells, &next) {
                        let asked = cell.chain.sample(&cell.lie, calls, index as u64);
                        let start = |nodes: &[String]| self.start(nodes);
                        let report = run_cell(cell.chain, &cell.lie, cell.mix, self.trust, &asked, &start);
                        table::print_crossed(&report);
                        self.progress.count(&report, cells.len());
                        reports.lock().unwrap_or_else(|error| error.into_inner()).push((index, report));
                    }
                });
            }
        });
        let mut reports = reports.into_inner().unwrap_or_else(|error| error.into_inner());
        reports.sort_by_key(|(index, _)| *index);
        reports.into_iter().map(|(_, report)| report).collect()
    }

    /// A third of the calls in front of each mix of honest nodes, in front of new gateways every now and then.
    fn honest(&self, chains: &LieChains, calls: usize) -> Vec<CellReport> {
        let start = |nodes: &[String]| self.start(nodes);
        let mut reports = Vec::new();
        let mut asked = 0;
        while asked < calls {
            for mix in NodeMix::HONEST {
                for chain in chains.of(self.trust) {
                    let report = run_honest(chain, mix, 2, &start);
                    table::print_crossed(&report);
                    asked += report.total().calls as usize;
                    reports.push(report);
                }
            }
        }
        reports
    }

    fn start(&self, nodes: &[String]) -> Box<dyn RunningGateway> {
        let number = self.started.fetch_add(1, Relaxed);
        let folder = self.folder.join(format!("gateway-{number}"));
        let nodes: String = nodes.iter().map(|url| format!("[[node]]\nurl = \"{url}\"\n")).collect();
        let rules = match self.trust {
            StateTrust::Proven => format!("genesis = {:?}\n", self.rules),
            StateTrust::Trusted | StateTrust::Confirmed => String::new(),
        };
        let config = format!(
            "[network]\nname = \"front\"\n{rules}[pool]\npoll_interval_ms = 20\n{nodes}{}",
            self.config
        );
        let start = || -> io::Result<GatewayProcess> {
            fs::create_dir_all(&folder)?;
            GatewayProcess::start_listening(&GatewayStart {
                program: self.program,
                folder: &folder,
                config: &config,
                open_files_max: None,
                log: LogTarget::File,
                log_level: "warn",
            })
        };
        let mut attempts = (0..STARTS_MAX).map(|_| start());
        let started = attempts.find(Result::is_ok).or_else(|| Some(start()));
        match started {
            Some(Ok(process)) => Box::new(FrontProcess { process, folder }),
            failed => panic!("the gateway does not start: {failed:?}"),
        }
    }
}

/// Counts of the cells that have ended, and of their calls.
#[derive(Default)]
struct MatrixProgress {
    cells: AtomicUsize,
    calls: AtomicU64,
}

impl MatrixProgress {
    fn count(&self, report: &CellReport, cells: usize) {
        let calls = self.calls.fetch_add(report.total().calls, Relaxed) + report.total().calls;
        let done = self.cells.fetch_add(1, Relaxed) + 1;
        if done.is_multiple_of(CELLS_PER_LINE) {
            println!("{done} of {cells} lies x mixes, {calls} calls");
        }
    }
}

fn take<'a, T>(items: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let index = next.fetch_add(1, Relaxed);
    items.get(index).map(|item| (index, item))
}

/// A gateway in front of nodes, in a process of its own; its folder is removed with it.
struct FrontProcess {
    process: GatewayProcess,
    folder: PathBuf,
}

impl RunningGateway for FrontProcess {
    fn public(&self) -> SocketAddr {
        self.process.public
    }

    fn operator(&self) -> SocketAddr {
        self.process.operator
    }

    fn path(&self) -> &str {
        chains::PATH
    }
}

impl Drop for FrontProcess {
    fn drop(&mut self) {
        let _gone = self.process.terminate();
        // The whole folder is removed in the end, should this fail.
        let _removed = fs::remove_dir_all(&self.folder);
    }
}

/// The path of the honest account.
const _: () = assert!(HONEST_KEY.len() + 4 == chains::PATH.len());
