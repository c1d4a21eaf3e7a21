//! alloy's provider against a gateway with the demo chain. The other clients are in `clients/`.

use alloy_eips::{BlockId, BlockNumberOrTag};
use alloy_primitives::{B256, U256};
use alloy_provider::network::{ReceiptResponse as _, TransactionResponse as _};
use alloy_provider::{Provider, ProviderBuilder};
use alloy_rpc_types_eth::{Filter, TransactionRequest};
use alloy_sol_types::{SolCall, SolError as _, SolEvent as _};
use demo::{CHAIN_ID, HEAD_HASH, HEAD_NUMBER};
use demo_builder::accounts::{ALICE, BOB, ERIN};
use demo_builder::contracts::{CHATTER, TOKEN, TOUR, abi};
use demo_builder::facts::{CHATTER_BLOCKS, Facts, mapping_slot};

use crate::demo_gateway::DemoGateway;

struct Demo {
    gateway: DemoGateway,
    facts: Facts,
}

impl Demo {
    fn start() -> Self {
        Self { gateway: DemoGateway::start(), facts: demo_builder::build().unwrap().facts }
    }

    fn provider(&self) -> impl Provider {
        self.provider_at("/v3/demo")
    }

    fn provider_at(&self, path: &str) -> impl Provider {
        let url = format!("http://{}{path}", self.gateway.public);
        ProviderBuilder::new().connect_http(url.parse().unwrap())
    }

    fn transaction(&self, name: &str) -> B256 {
        self.facts.transaction(name).unwrap()
    }
}

fn call(call: &impl SolCall) -> TransactionRequest {
    TransactionRequest::default().from(ALICE.address).to(TOUR.address()).input(call.abi_encode().into())
}

#[tokio::test]
async fn the_chain_and_its_blocks_are_read() {
    let demo = Demo::start();
    let provider = demo.provider();
    assert_eq!(provider.get_chain_id().await.unwrap(), CHAIN_ID);
    assert_eq!(provider.get_block_number().await.unwrap(), HEAD_NUMBER);
    for which in [BlockId::number(HEAD_NUMBER), BlockId::hash(HEAD_HASH), BlockId::latest()] {
        let block = provider.get_block(which).full().await.unwrap().unwrap();
        assert_eq!(block.header.hash, HEAD_HASH);
        assert_eq!(block.transactions.txns().next().unwrap().tx_hash(), demo.transaction("head-unprotected"));
    }
    for tag in [BlockNumberOrTag::Safe, BlockNumberOrTag::Finalized] {
        assert!(provider.get_block_by_number(tag).await.unwrap().is_some());
    }
    assert!(provider.get_block(BlockId::number(HEAD_NUMBER + 1)).await.unwrap().is_none());
}

#[tokio::test]
async fn transactions_receipts_and_uncles_are_read() {
    let demo = Demo::start();
    let provider = demo.provider();
    for name in ["head-protected", "head-access-list", "head-dynamic-fee", "head-blobs", "head-delegation"] {
        let hash = demo.transaction(name);
        let transaction = provider.get_transaction_by_hash(hash).await.unwrap().unwrap();
        assert_eq!(transaction.tx_hash(), hash, "{name}");
    }
    assert!(provider.get_transaction_by_hash(B256::ZERO).await.unwrap().is_none());

    let receipt =
        async |name| provider.get_transaction_receipt(demo.transaction(name)).await.unwrap().unwrap();
    assert_eq!(receipt("create-tour").await.contract_address(), Some(TOUR.address()));
    assert!(!receipt("revert-reason").await.status());
    assert!(receipt("create-early").await.state_root().is_some());
    assert!(provider.get_transaction_receipt(B256::ZERO).await.unwrap().is_none());
    let receipts = provider.get_block_receipts(BlockId::number(HEAD_NUMBER)).await.unwrap().unwrap();
    assert!(receipts.len() >= 8);

    let two_uncles = BlockId::number(demo.facts.block("two-uncles").unwrap());
    assert_eq!(provider.get_uncle_count(two_uncles).await.unwrap(), 2);
    assert!(provider.get_uncle(two_uncles, 1).await.unwrap().is_some());
    assert!(provider.get_uncle(two_uncles, 2).await.unwrap().is_none());
}

#[tokio::test]
async fn logs_and_storage_are_read() {
    let demo = Demo::start();
    let provider = demo.provider();
    let filter = Filter::new()
        .address(TOKEN.address())
        .event_signature(abi::Token::Transfer::SIGNATURE_HASH)
        .topic2(BOB.address.into_word())
        .select(demo.facts.block("token-transfers").unwrap());
    let logs = provider.get_logs(&filter).await.unwrap();
    let [log] = &logs[..] else { panic!("{logs:?}") };
    let transfer = log.log_decode::<abi::Token::Transfer>().unwrap();
    assert_eq!(transfer.inner.from, ALICE.address);

    let storage = async |position| provider.get_storage_at(TOUR.address(), position).await.unwrap();
    assert_eq!(storage(U256::ZERO).await, U256::from(1234));
    assert_eq!(storage(mapping_slot(ERIN.address, 1).into()).await, U256::from(5678));
}

#[tokio::test]
async fn calls_answer_and_reverts_have_reasons() {
    let demo = Demo::start();
    let provider = demo.provider();
    let balance = abi::Token::balanceOfCall { owner: ALICE.address };
    let request = call(&balance).to(TOKEN.address());
    let answer = provider.call(request).await.unwrap();
    let position = mapping_slot(ALICE.address, 0).into();
    let stored = provider.get_storage_at(TOKEN.address(), position).await.unwrap();
    assert_eq!(abi::Token::balanceOfCall::abi_decode_returns(&answer).unwrap(), stored);

    let refused = async |request| {
        let error = provider.call(request).await.unwrap_err();
        let payload = error.as_error_resp().unwrap();
        assert_eq!(payload.code, 3);
        (payload.message.to_string(), payload.as_revert_data().unwrap())
    };
    let (message, _) = refused(call(&abi::Tour::failWithReasonCall {})).await;
    assert_eq!(message, "execution reverted: the tour ends here");
    let (message, _) = refused(call(&abi::Tour::failWithAssertCall {})).await;
    assert_eq!(message, "execution reverted: assert(false)");
    let (_, data) = refused(call(&abi::Tour::failWithErrorCall { wanted: U256::from(99) })).await;
    assert_eq!(abi::Tour::NotEnough::abi_decode(&data).unwrap().wanted, U256::from(99));

    let transfer = abi::Token::transferCall { to: BOB.address, value: U256::from(1) };
    let gas = provider.estimate_gas(call(&transfer).to(TOKEN.address())).await.unwrap();
    assert!((21_000..100_000).contains(&gas), "{gas}");
    let error = provider.estimate_gas(call(&abi::Tour::failWithReasonCall {})).await.unwrap_err();
    assert!(error.to_string().contains("the tour ends here"), "{error}");
}

#[tokio::test]
async fn keys_and_limits_are_told() {
    let demo = Demo::start();
    for (path, message) in [("/v3", "project id required in the URL"), ("/v3/nobody", "invalid project id")] {
        let error = demo.provider_at(path).get_block_number().await.unwrap_err();
        let payload = error.as_error_resp().unwrap();
        assert_eq!((payload.code, &*payload.message), (-32002, message));
    }

    let provider = demo.provider();
    let (first, last) = CHATTER_BLOCKS.into_inner();
    let logs = Filter::new().address(CHATTER.address()).from_block(first);
    let error = provider.get_logs(&logs.clone().to_block(last)).await.unwrap_err();
    let payload = error.as_error_resp().unwrap();
    assert_eq!((payload.code, &*payload.message), (-32005, "query returned more than 10000 results"));
    assert_eq!(provider.get_logs(&logs.to_block(last - 10)).await.unwrap().len(), 10_000);
}
