//! A gateway in front of nodes: other gateways with the demo chain, behind proxies that make them fail in every way.

mod failover; // nobody of our own can answer
mod front; // the gateway under test
mod moods; // one node of three is not what it should be
mod questions; // what is asked, and the true answers
mod reorganised; // a real node that changes its mind
mod storm; // everything at once
