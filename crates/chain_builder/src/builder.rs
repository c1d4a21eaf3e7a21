//! Assembles valid blocks on a state in memory: the demo chain, the chains of tests and of the benchmark.
//!
//! Everything is deterministic: the same genesis and the same plans give the same hashes. Seals are left zero.

use crate::header;
use crate::memory::MemoryState;
use alloy_consensus::{BlockBody, Header, Sealed, Transaction as _, proofs, transaction::Recovered};
use alloy_eips::eip4895::{Withdrawal, Withdrawals};
use alloy_genesis::Genesis;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, B256, Bytes, Sealable, U256, keccak256};
use archive::{
    Ancestry, Block, BlockExecutionResult, BlockFault, ChainSpec, ExecutionFault, GenesisError, Receipt,
    StateChanges, Transaction, check_block, execute_block,
};
use std::io;

/// Seconds between blocks whose plan has no timestamp.
const BLOCK_TIME_S: u64 = 12;

/// A chain that grows block by block.
#[derive(Debug, Clone)]
pub struct ChainBuilder {
    spec: ChainSpec,
    state: MemoryState,
    ancestry: Ancestry,
    /// By number.
    links: Vec<ParentBlock>,
}

/// A block of the chain, as its children need it.
#[derive(Debug, Clone)]
struct ParentBlock {
    header: Sealed<Header>,
    total_difficulty: U256,
}

/// The content of the next block. Everything that is left out follows from the chain.
#[derive(Debug, Clone, Default)]
pub struct BlockPlan {
    /// Seconds since 1970; `None` is twelve seconds after the parent.
    pub timestamp: Option<u64>,
    /// The recipient of the fees and rewards.
    pub beneficiary: Address,
    /// The transactions, in order, each with its sender.
    pub transactions: Vec<Recovered<Transaction>>,
    /// Headers made by [`ChainBuilder::uncle_of`]; none after the merge.
    pub uncles: Vec<Header>,
    /// The payments of the consensus layer; none before Shanghai.
    pub withdrawals: Vec<Withdrawal>,
    /// At most 32 bytes, of any content.
    pub extra_data: Bytes,
    /// `None` takes the parent's.
    pub gas_limit: Option<u64>,
    /// `None` is the result of Ethereum's formula. Used only before the merge.
    pub difficulty: Option<U256>,
    /// `None` derives it from the parent's hash. Used only after the merge.
    pub prev_randao: Option<B256>,
    /// `None` derives it from the parent's hash. Used only from Cancun on.
    pub parent_beacon_root: Option<B256>,
}

/// A block with the results of its execution.
#[derive(Debug, Clone)]
pub struct BuiltBlock {
    /// The block.
    pub block: Block,
    /// Its hash.
    pub hash: B256,
    /// A receipt per transaction.
    pub receipts: Vec<Receipt>,
    /// The sender of each transaction.
    pub senders: Vec<Address>,
    /// Its changes to the state.
    pub changes: StateChanges,
}

impl BuiltBlock {
    /// The block as block files carry it.
    pub fn rlp(&self) -> Vec<u8> {
        alloy_rlp::encode(&self.block)
    }
}

/// Writes blocks one after another, as `geth export` does.
pub fn write_blocks<'a>(
    blocks: impl IntoIterator<Item = &'a BuiltBlock>,
    out: &mut impl io::Write,
) -> io::Result<()> {
    blocks.into_iter().try_for_each(|block| out.write_all(&block.rlp()))
}

impl ChainBuilder {
    /// A chain that has only its genesis.
    pub fn new(genesis: Genesis) -> Result<Self, GenesisError> {
        let spec = ChainSpec::from_genesis(genesis)?;
        let mut state = MemoryState::from_genesis(spec.genesis());
        let header = spec.genesis_header().seal_slow();
        state.add_block_hash(header.number, header.hash());
        let ancestry = Ancestry::at_genesis(header.clone());
        let genesis = ParentBlock { total_difficulty: header.difficulty, header };
        Ok(Self { spec, state, ancestry, links: vec![genesis] })
    }

    /// The chain's rules.
    pub fn spec(&self) -> &ChainSpec {
        &self.spec
    }

    /// The newest block's header.
    pub fn head(&self) -> &Sealed<Header> {
        self.ancestry.parent()
    }

    /// The header of a block of this chain.
    pub fn header(&self, number: u64) -> Option<&Sealed<Header>> {
        self.link(number).map(|link| &link.header)
    }

    /// The state after the newest block.
    pub fn state(&self) -> &MemoryState {
        &self.state
    }

    /// The header of the block that a plan would give, before its execution: number, time, gas limit, base fee and
    /// blob gas are right; what depends on the transactions is missing. [`ChainSpec::rules_at`] tells its rules.
    pub fn next_header(&self, plan: &BlockPlan) -> Header {
        self.child(self.head(), self.ancestry.total_difficulty(), plan)
    }

    /// A block beside the chain that later blocks can include: a child of the block with this number. Different
    /// salts give different uncles. None if there is no such block.
    pub fn uncle_of(&self, parent: u64, salt: u64) -> Option<Header> {
        let parent = self.link(parent)?;
        let seed = keccak256([parent.header.hash().as_slice(), &salt.to_be_bytes()].concat());
        let plan = BlockPlan {
            beneficiary: Address::from_word(seed),
            extra_data: Bytes::from_static(b"uncle"),
            ..BlockPlan::default()
        };
        let mut uncle = self.child(&parent.header, parent.total_difficulty, &plan);
        uncle.state_root = parent.header.state_root;
        Some(uncle)
    }

    /// Builds the next block. If that fails, the chain stays as it was.
    pub fn build(&mut self, plan: BlockPlan) -> Result<BuiltBlock, BuildError> {
        let (mut block, senders) = self.assemble(plan);
        let checked = check_block(&self.spec, &self.ancestry, &block)?;
        let rules = self.spec.rules_at(&block.header);
        let mut roots = self.state.trial();
        let executed = execute_block(rules, &block, &senders, &self.state, &mut roots)?;
        let touched = roots.into_touched();
        self.state.accept(&executed.changes, touched);
        complete(&mut block.header, &executed);

        let header = block.header.clone().seal_slow();
        let hash = header.hash();
        self.state.add_block_hash(header.number, hash);
        self.ancestry.push(header.clone(), checked.uncle_hashes);
        self.links.push(ParentBlock { header, total_difficulty: checked.total_difficulty });
        Ok(BuiltBlock { block, hash, receipts: executed.receipts, senders, changes: executed.changes })
    }

    fn link(&self, number: u64) -> Option<&ParentBlock> {
        self.links.get(usize::try_from(number).ok()?)
    }

    /// The block of a plan before its execution, with the senders of its transactions.
    fn assemble(&self, plan: BlockPlan) -> (Block, Vec<Address>) {
        let mut header = self.next_header(&plan);
        let (transactions, senders): (Vec<Transaction>, _) =
            plan.transactions.into_iter().map(Recovered::into_parts).unzip();
        header.transactions_root = proofs::calculate_transaction_root(&transactions);
        header.ommers_hash = proofs::calculate_ommers_root(&plan.uncles);
        if let Some(root) = &mut header.withdrawals_root {
            *root = proofs::calculate_withdrawals_root(&plan.withdrawals);
        }
        if let Some(gas) = &mut header.blob_gas_used {
            *gas = transactions.iter().filter_map(|transaction| transaction.blob_gas_used()).sum();
        }
        // Withdrawals where there cannot be any stay in the body, so that the check finds them.
        let has_withdrawals = header.withdrawals_root.is_some() || !plan.withdrawals.is_empty();
        let withdrawals = has_withdrawals.then_some(Withdrawals::new(plan.withdrawals));
        (Block { header, body: BlockBody { transactions, ommers: plan.uncles, withdrawals } }, senders)
    }

    /// The header of a child, as far as parent and plan decide it.
    fn child(&self, parent: &Sealed<Header>, total_difficulty: U256, plan: &BlockPlan) -> Header {
        let merged = self.spec.terminal_total_difficulty().is_some_and(|end| total_difficulty >= end);
        let timestamp = plan.timestamp.unwrap_or(parent.timestamp.saturating_add(BLOCK_TIME_S));
        let mut header = Header {
            parent_hash: parent.hash(),
            beneficiary: plan.beneficiary,
            number: parent.number + 1,
            timestamp,
            extra_data: plan.extra_data.clone(),
            difficulty: if merged { U256::ZERO } else { U256::ONE },
            ..Header::default()
        };
        let rules = self.spec.rules_at(&header);
        if merged {
            header.mix_hash = plan.prev_randao.unwrap_or_else(|| derived(parent.hash(), b"randao"));
        } else {
            header.difficulty =
                plan.difficulty.unwrap_or_else(|| header::difficulty(rules, parent, timestamp));
        }
        header.gas_limit = plan.gas_limit.unwrap_or_else(|| header::gas_limit(rules, parent));
        header.base_fee_per_gas = header::base_fee(rules, parent);
        header.withdrawals_root = rules.is_shanghai_active_at_timestamp(timestamp).then_some(B256::ZERO);
        header.requests_hash = rules.is_prague_active_at_timestamp(timestamp).then_some(B256::ZERO);
        if rules.is_cancun_active_at_timestamp(timestamp) {
            header.blob_gas_used = Some(0);
            header.excess_blob_gas = header::excess_blob_gas(&self.spec, parent, timestamp);
            let root = plan.parent_beacon_root.unwrap_or_else(|| derived(parent.hash(), b"beacon"));
            header.parent_beacon_block_root = Some(root);
        }
        header
    }
}

/// Sets the fields of a header that are known only after execution.
fn complete(header: &mut Header, executed: &BlockExecutionResult) {
    header.state_root = executed.state_root;
    header.receipts_root = executed.receipts_root();
    header.logs_bloom = executed.logs_bloom();
    header.gas_used = executed.gas_used;
    if header.requests_hash.is_some() {
        header.requests_hash = Some(executed.requests.requests_hash());
    }
}

/// A deterministic value in place of one that the network would choose.
fn derived(parent: B256, purpose: &[u8]) -> B256 {
    keccak256([parent.as_slice(), purpose].concat())
}

/// Why a plan gives no valid block.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The block breaks a rule that can be checked without executing it.
    #[error(transparent)]
    Rules(#[from] BlockFault),
    /// The block cannot be executed.
    #[error(transparent)]
    Execution(#[from] ExecutionFault),
}
