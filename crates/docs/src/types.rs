//! The types of parameters and results: one row per type, in a shorthand from which both documents are generated.
//!
//! An object is its members as `name:Type`, with `?` behind the name of one that is not always there; `[Type]` is an
//! array, `Type|null` may be null, and other bars separate alternatives.

/// A type: its name, what it is, and its shape.
pub(crate) struct Type {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) shape: Shape,
}

pub(crate) enum Shape {
    /// A string that matches this pattern.
    Text(&'static str),
    /// A JSON type by its name.
    Plain(&'static str),
    /// One of these.
    OneOf(&'static str),
    Object(&'static str),
}

use Shape::{Object, OneOf, Plain, Text};

const fn row(name: &'static str, about: &'static str, shape: Shape) -> Type {
    Type { name, about, shape }
}

#[rustfmt::skip]
pub(crate) static TYPES: &[Type] = &[
    row("Quantity", "a number: `0x` and hexadecimal without leading zeros; in results, lower case", Text("^0[xX](0|[1-9a-fA-F][0-9a-fA-F]*)$")),
    row("Data", "bytes: `0x` and two digits each; in results, lower case", Text("^0[xX]([0-9a-fA-F]{2})*$")),
    row("Address", "20 bytes", Text("^0[xX][0-9a-fA-F]{40}$")),
    row("Hash", "32 bytes", Text("^0[xX][0-9a-fA-F]{64}$")),
    row("Position", "a storage slot: at most 32 bytes of hexadecimal, padded or not", Text("^(0[xX])?[0-9a-fA-F]{0,64}$")),
    row("Hex", "hexadecimal, with `0x` or without", Text("^(0[xX])?[0-9a-fA-F]*$")),
    row("Tag", "the name of a block", Text("^(latest|earliest|pending|finalized|safe)$")),
    row("Decimal", "a number in decimal digits", Text("^[0-9]+$")),
    row("Text", "any text", Plain("string")),
    row("OpenRpc", "an OpenRPC document", Plain("object")),
    row("Integer", "a JSON integer", Plain("integer")),
    row("Number", "a JSON number", Plain("number")),
    row("Boolean", "true or false", Plain("boolean")),
    row("BlockObject", "a block by number or by hash (EIP-1898). By its hash, a block that was reorganised away can still be found for some time, unless `requireCanonical` is set", Object("blockNumber?:BlockNumber|null blockHash?:Hash|null requireCanonical?:Boolean|null")),
    row("BlockNumber", "a block by number or tag", OneOf("Quantity|Tag")),
    row("BlockId", "a block by number, tag, hash or object", OneOf("BlockNumber|Hash|BlockObject")),
    row("BlockIdOrDecimal", "a block by number (hexadecimal, decimal or JSON integer), tag, hash or object", OneOf("BlockId|Integer|Decimal")),
    row("Count", "a number: hexadecimal, decimal or JSON integer", OneOf("Quantity|Integer|Decimal")),
    row("Topic", "any topic (null), one topic, or one of several; a null in the list makes it any topic", OneOf("null|Hash|[TopicChoice]")),
    row("TopicChoice", "one topic, or any (null)", OneOf("null|Hash")),
    row("Addresses", "one address, or one of several", OneOf("Address|[Address]")),
    row("Filter", "which logs to return: those of a range of blocks or of one block. `blockhash` is the same as `blockHash`", Object("fromBlock?:BlockNumber|null toBlock?:BlockNumber|null blockHash?:Hash|null blockhash?:Hash|null address?:Addresses|null topics?:[Topic]|null")),
    row("Call", "the message to execute. If both `input` and `data` are set, `input` is used", Object("from?:Address|null to?:Address|null gas?:Quantity|null gasPrice?:Quantity|null maxFeePerGas?:Quantity|null maxPriorityFeePerGas?:Quantity|null value?:Quantity|null data?:Data|null input?:Data|null nonce?:Quantity|null chainId?:Quantity|null type?:Quantity|null accessList?:[AccessListParam]|null maxFeePerBlobGas?:Quantity|null blobVersionedHashes?:[Hex]|null authorizationList?:[AuthorizationParam]|null")),
    row("StateOverrides", "changes by address: balance, nonce, code, state or stateDiff", Plain("object")),
    row("BlockOverrides", "changes of the block: number, time, gasLimit, baseFee …", Plain("object")),
    row("AccessListParam", "an address and storage slots, in a parameter", Object("address:Hex storageKeys:[Hex]")),
    row("AuthorizationParam", "a signed EIP-7702 authorization, in a parameter: chainId, address, nonce, yParity, r, s", Plain("object")),
    row("AccessListItem", "an address and storage slots", Object("address:Address storageKeys:[Hash]")),
    row("Authorization", "a signed EIP-7702 authorization", Object("chainId:Quantity address:Address nonce:Quantity yParity:Quantity r:Quantity s:Quantity")),
    row("Transaction", "a transaction. Which optional members it has depends on its type. One that is not in a block yet has no `blockTimestamp`, and its block is null", Object("blockHash:Hash|null blockNumber:Quantity|null blockTimestamp?:Quantity transactionIndex:Quantity|null hash:Hash from:Address to:Address|null gas:Quantity gasPrice:Quantity input:Data nonce:Quantity value:Quantity type:Quantity v:Quantity r:Quantity s:Quantity yParity?:Quantity chainId?:Quantity maxFeePerGas?:Quantity maxPriorityFeePerGas?:Quantity accessList?:[AccessListItem] maxFeePerBlobGas?:Quantity blobVersionedHashes?:[Hash] authorizationList?:[Authorization]")),
    row("Log", "a log of a transaction", Object("address:Address topics:[Hash] data:Data blockNumber:Quantity blockHash:Hash blockTimestamp:Quantity transactionHash:Hash transactionIndex:Quantity logIndex:Quantity removed:Boolean")),
    row("Receipt", "a receipt. It has `root` before Byzantium, and `status` since", Object("blockHash:Hash blockNumber:Quantity transactionHash:Hash transactionIndex:Quantity type:Quantity from:Address to:Address|null contractAddress:Address|null gasUsed:Quantity cumulativeGasUsed:Quantity effectiveGasPrice:Quantity logs:[Log] logsBloom:Data status?:Quantity root?:Hash blobGasUsed?:Quantity blobGasPrice?:Quantity")),
    row("Withdrawal", "ether from the consensus layer", Object("index:Quantity validatorIndex:Quantity address:Address amount:Quantity")),
    row("TransactionOrHash", "a transaction or its hash", OneOf("Transaction|Hash")),
    row("Block", "a block. `transactions` are hashes, or whole transactions if `fullTransactions` is `true`. In front of nodes there is no `totalDifficulty`, because it cannot be proven. Other optional members depend on the fork", Object("number:Quantity hash:Hash parentHash:Hash nonce:Data mixHash:Hash sha3Uncles:Hash logsBloom:Data transactionsRoot:Hash stateRoot:Hash receiptsRoot:Hash miner:Address difficulty:Quantity totalDifficulty?:Quantity extraData:Data size:Quantity gasLimit:Quantity gasUsed:Quantity timestamp:Quantity transactions:[TransactionOrHash] uncles:[Hash] baseFeePerGas?:Quantity withdrawals?:[Withdrawal] withdrawalsRoot?:Hash blobGasUsed?:Quantity excessBlobGas?:Quantity parentBeaconBlockRoot?:Hash requestsHash?:Hash slotNumber?:Quantity blockAccessListHash?:Hash")),
    row("Header", "the header of a block. Optional members depend on the fork", Object("number:Quantity hash:Hash parentHash:Hash nonce:Data mixHash:Hash sha3Uncles:Hash logsBloom:Data transactionsRoot:Hash stateRoot:Hash receiptsRoot:Hash miner:Address difficulty:Quantity extraData:Data gasLimit:Quantity gasUsed:Quantity timestamp:Quantity baseFeePerGas?:Quantity withdrawalsRoot?:Hash blobGasUsed?:Quantity excessBlobGas?:Quantity parentBeaconBlockRoot?:Hash requestsHash?:Hash slotNumber?:Quantity blockAccessListHash?:Hash")),
    row("Uncle", "an uncle's header", Object("number:Quantity hash:Hash parentHash:Hash nonce:Data mixHash:Hash sha3Uncles:Hash logsBloom:Data transactionsRoot:Hash stateRoot:Hash receiptsRoot:Hash miner:Address difficulty:Quantity totalDifficulty:null extraData:Data size:Quantity gasLimit:Quantity gasUsed:Quantity timestamp:Quantity uncles:[Hash] baseFeePerGas?:Quantity")),
    row("FeeHistory", "fees of a range of blocks and of the block after it", Object("oldestBlock:Quantity baseFeePerGas:[Quantity] gasUsedRatio:[Number] baseFeePerBlobGas:[Quantity] blobGasUsedRatio:[Number] reward?:[Rewards]")),
    row("Rewards", "priority fees of one block, by percentile", OneOf("[Quantity]")),
    row("RawTransaction", "a transaction in the internal format of the layer 2: L1, L2 or ProtocolUpgrade", Object("common_data:RawCommonData execute:RawExecute received_timestamp_ms:Integer raw_bytes:Data|null")),
    row("RawCommonData", "the members that depend on the kind of transaction", Plain("object")),
    row("RawExecute", "the message that the transaction executes", Object("contractAddress:Address|null calldata:Data value:Quantity factoryDeps:[Bytes]")),
    row("Bytes", "bytes as JSON integers", OneOf("[Integer]")),
];

/// The members of an object: name, type, and whether it is always there.
pub(crate) fn members(object: &'static str) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    object.split(' ').filter_map(|member| member.split_once(':')).map(|(name, shape)| {
        let always = !name.ends_with('?');
        (name.trim_end_matches('?'), shape, always)
    })
}
