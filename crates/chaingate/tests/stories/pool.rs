//! A gateway in front of nodes: other gateways with the demo chain, behind proxies that make them fail in every way.

#[path = "pool/callers.rs"]
mod callers; // callers at a steady rate
#[path = "pool/changes.rs"]
mod changes; // changes that readers are told of
#[path = "pool/confirmed.rs"]
mod confirmed; // nodes that lie about the state
#[path = "pool/confirmed_again.rs"]
mod confirmed_again; // answers of a quorum that must be confirmed again
#[path = "pool/convictions.rs"]
mod convictions; // when a node is taken for a liar
#[path = "pool/deep.rs"]
mod deep; // blocks below the window
#[path = "pool/deep_questions.rs"]
mod deep_questions; // questions about blocks below the window
#[path = "pool/ethereumjs.rs"]
mod ethereumjs; // a real node with a dialect of its own
#[path = "pool/executed.rs"]
mod executed; // an archive that goes on with the blocks of the nodes
#[path = "pool/executed_through_faults.rs"]
mod executed_through_faults; // the same with kills, full disks and chains that are too far away
#[path = "pool/failover.rs"]
mod failover; // nobody of our own can answer
#[path = "pool/following.rs"]
mod following; // blocks that are stored as the chain grows
#[path = "pool/fees.rs"]
mod fees; // gas prices
#[path = "pool/forged.rs"]
mod forged; // nodes that lie about block data
#[path = "pool/front.rs"]
pub(crate) mod front; // the gateway under test
#[path = "pool/frozen.rs"]
mod frozen; // the gateway itself is stopped for a while
#[path = "pool/gateways.rs"]
mod gateways; // nodes that are gateways themselves, stopped and killed
#[path = "pool/huge_numbers.rs"]
mod huge_numbers; // numbers that no chain has, from all nodes
#[path = "pool/identity.rs"]
mod identity; // which chain this is
#[path = "pool/cached.rs"]
mod cached; // answers that are cached
#[path = "pool/following_through_faults.rs"]
mod following_through_faults; // following gateways that are killed, and full disks
#[path = "pool/labels.rs"]
mod labels; // the table of `Chaingate-Verified` in the documents
#[path = "pool/lying_partner.rs"]
mod lying_partner; // a partner that lies while all nodes are down
#[path = "pool/lists.rs"]
mod lists; // a node that lists other transactions than a block has
#[path = "pool/long.rs"]
mod long; // a chain with deep blocks
#[path = "pool/makes.rs"]
mod makes; // real nodes of other makes
#[path = "pool/memory.rs"]
mod memory; // replies that want more memory than there is
#[path = "pool/one_faulty_node.rs"]
mod one_faulty_node; // one node of three is not what it should be
#[path = "pool/outages.rs"]
mod outages; // messages about nodes that cannot be used
#[path = "pool/odd_chains.rs"]
mod odd_chains; // real nodes with old forks, and with the chain ids of public networks
#[path = "pool/pending.rs"]
mod pending; // calls about the pending block
#[path = "pool/disputed_location.rs"]
mod disputed_location; // in which block a transaction is
#[path = "pool/processes.rs"]
mod processes; // real nodes that are stopped, killed and reorganised
#[path = "pool/proven_state.rs"]
mod proven_state; // storage, balances, code and calls with their proofs
#[path = "pool/pruned.rs"]
mod pruned; // nodes that have dropped what is old
#[path = "pool/pruned_makes.rs"]
mod pruned_makes; // nodes of each make that have dropped old data
#[path = "pool/questions.rs"]
mod questions; // questions, and their true answers
#[path = "pool/reorganised.rs"]
mod reorganised; // a real node that changes its mind
#[path = "pool/reorganised_following.rs"]
mod reorganised_following; // following a real node that changes its mind
#[path = "pool/reorganised_under_load.rs"]
mod reorganised_under_load; // real nodes that change their minds while they are asked
#[path = "pool/storm.rs"]
mod storm; // everything at once
#[path = "pool/supervised.rs"]
mod supervised; // tasks that watch and follow, and panic
#[path = "pool/reorg_consistency.rs"]
mod reorg_consistency; // answers about a chain that is reorganised
#[path = "pool/identical_nodes.rs"]
mod identical_nodes; // real nodes that have the same chain
#[path = "pool/traces.rs"]
mod traces; // which trace nodes are told, and which node others are told
#[path = "pool/zksync.rs"]
mod zksync; // a chain whose blocks cannot be proven
