import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BaseError, BlockNotFoundError, ContractFunctionRevertedError, concat, createPublicClient, defineChain,
  http, keccak256, pad, parseAbiItem, parseEther, toHex, zeroHash,
} from "viem";
import { chatter, chatterFits, chatterFrom, chatterTo, facts, noKeyUrl, token, tour, url, wrongKeyUrl } from "./chain.js";

const chain = defineChain({
  id: facts.chainId,
  name: "Chaingate demo",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [url] } },
});
// Refusals are what is tested, so nothing is tried again.
const client = createPublicClient({ chain, transport: http(url, { retryCount: 0 }) });
const { Alice: alice, Bob: bob, Erin: erin } = facts.accounts;
const transfer = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)");

// The error of a promise that must fail, or the one beneath it that passes a test.
async function failure(promise, which = () => true) {
  const error = await promise.then(() => assert.fail("it did not fail"), (error) => error);
  return error instanceof BaseError ? error.walk(which) : assert.fail(error);
}

test("the chain is the one that was configured", async () => {
  assert.equal(await client.getChainId(), facts.chainId);
  assert.equal(await client.getBlockNumber(), BigInt(facts.head.number));
});

test("a block is read by number, by hash and by tag", async () => {
  const { number, hash } = facts.blocks.head;
  for (const which of [{ blockNumber: BigInt(number) }, { blockHash: hash }, { blockTag: "latest" }]) {
    const block = await client.getBlock({ ...which, includeTransactions: true });
    assert.equal(block.hash, hash);
    const types = block.transactions.slice(0, 6).map((transaction) => transaction.type);
    assert.deepEqual(types, ["legacy", "legacy", "eip2930", "eip1559", "eip4844", "eip7702"]);
  }
  for (const blockTag of ["safe", "finalized"]) assert.ok((await client.getBlock({ blockTag })).number <= BigInt(number));
});

test("what is not there is not found", async () => {
  const error = await failure(client.getBlock({ blockNumber: BigInt(facts.head.number + 1) }));
  assert.ok(error instanceof BlockNotFoundError);
  assert.equal((await failure(client.getTransaction({ hash: zeroHash }))).name, "TransactionNotFoundError");
  assert.equal((await failure(client.getTransactionReceipt({ hash: zeroHash }))).name, "TransactionReceiptNotFoundError");
});

test("transactions are read by hash and by place", async () => {
  const { hash, block, index } = facts.transactions["head-delegation"];
  const transaction = await client.getTransaction({ hash });
  assert.deepEqual([transaction.type, transaction.authorizationList.length], ["eip7702", 1]);
  const placed = await client.getTransaction({ blockNumber: BigInt(block), index });
  assert.equal(placed.hash, hash);
  const { hash: blob } = facts.transactions["three-blobs"];
  assert.equal((await client.getTransaction({ hash: blob })).blobVersionedHashes.length, 3);
});

test("receipts have a status, or a root from before Byzantium", async () => {
  const receipt = (name) => client.getTransactionReceipt({ hash: facts.transactions[name].hash });
  const created = await receipt("create-tour");
  assert.deepEqual([created.status, created.contractAddress.toLowerCase()], ["success", tour.address.toLowerCase()]);
  assert.equal((await receipt("revert-reason")).status, "reverted");
  assert.equal((await receipt("create-early")).root.length, 66);
});

test("an uncle is read", async () => {
  const params = [toHex(facts.blocks["two-uncles"].number), "0x1"];
  const uncle = await client.request({ method: "eth_getUncleByBlockNumberAndIndex", params });
  assert.equal(uncle.hash.length, 66);
});

test("logs are filtered by contract, event and argument", async () => {
  const { number, hash } = facts.blocks["token-transfers"];
  const [fromBlock, toBlock] = [BigInt(number), BigInt(number)];
  const logs = await client.getLogs({ address: token.address, event: transfer, args: { to: bob }, fromBlock, toBlock });
  assert.deepEqual(logs.map((log) => log.args.value), [parseEther("10000")]);
  assert.equal((await client.getLogs({ blockHash: hash, event: transfer })).length, 3);
});

test("a variable and an element of a mapping are read from storage", async () => {
  assert.equal(BigInt(await client.getStorageAt({ address: tour.address, slot: "0x0" })), 1234n);
  const slot = keccak256(concat([pad(erin, { size: 32 }), pad("0x1", { size: 32 })]));
  assert.equal(slot, facts.slots["points of Erin"].position);
  assert.equal(BigInt(await client.getStorageAt({ address: tour.address, slot })), 5678n);
});

test("view functions answer, also about the past", async () => {
  assert.equal(await client.readContract({ ...tour, functionName: "answer" }), 1234n);
  assert.equal(await client.readContract({ ...token, functionName: "symbol" }), "TOUR");
  const blockNumber = BigInt(facts.transactions["create-tour"].block);
  assert.equal(await client.readContract({ ...tour, functionName: "count", blockNumber }), 0n);
});

test("a revert is caught with its reason", async () => {
  const revert = (functionName, args = []) => {
    const call = client.simulateContract({ ...tour, functionName, args, account: alice });
    return failure(call, (error) => error instanceof ContractFunctionRevertedError);
  };
  assert.equal((await revert("failWithReason")).reason, "the tour ends here");
  const panic = await revert("failWithAssert");
  assert.deepEqual([panic.data.errorName, panic.data.args], ["Panic", [1n]]);
  const custom = await revert("failWithError", [99n]);
  assert.deepEqual([custom.data.errorName, custom.data.args[0]], ["NotEnough", 99n]);
});

test("gas is estimated, and a revert is found while estimating", async () => {
  const gas = await client.estimateContractGas({ ...token, functionName: "transfer", args: [bob, 1n], account: alice });
  assert.ok(gas > 21_000n && gas < 100_000n, `${gas}`);
  const refused = client.estimateContractGas({ ...tour, functionName: "failWithReason", account: alice });
  assert.match((await failure(refused)).message, /the tour ends here/);
});

test("a missing and a wrong key are told", async () => {
  for (const [where, message] of [[noKeyUrl, "project id required in the URL"], [wrongKeyUrl, "invalid project id"]]) {
    const keyless = createPublicClient({ chain, transport: http(where, { retryCount: 0 }) });
    const error = await failure(keyless.getBlockNumber(), (error) => error.code === -32002);
    assert.equal(error.details, message);
  }
});

test("a method that is not available says why in its message", async () => {
  const error = await failure(client.request({ method: "eth_newFilter", params: [{}] }), (error) => error.details);
  assert.match(error.details, /^the method eth_newFilter does not exist\/is not available: .*filters/);
});

test("too many logs are refused, and as many as are allowed come", async () => {
  const from = { address: chatter.address, fromBlock: BigInt(chatterFrom) };
  const error = await failure(client.getLogs({ ...from, toBlock: BigInt(chatterTo) }), (error) => error.code === -32005);
  assert.equal(error.details, "query returned more than 10000 results");
  assert.equal((await client.getLogs({ ...from, toBlock: BigInt(chatterFits) })).length, 10_000);
});

test("calls made at the same time travel as a batch", async () => {
  const sizes = [];
  const onFetchRequest = async (request) => void sizes.push([await request.clone().json()].flat().length);
  const batching = createPublicClient({ chain, transport: http(url, { batch: true, onFetchRequest }) });
  const numbers = [1n, 5n, 9n, 33n];
  const blocks = await Promise.all(numbers.map((blockNumber) => batching.getBlock({ blockNumber })));
  assert.deepEqual(blocks.map((block) => block.number), numbers);
  assert.deepEqual(sizes, [4]);
});
