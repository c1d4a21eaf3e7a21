import assert from "node:assert/strict";
import { test } from "node:test";
import { Web3 } from "web3";
import { chatter, chatterFits, chatterFrom, chatterTo, facts, noKeyUrl, token, tour, url, wrongKeyUrl } from "./chain.js";

const web3 = new Web3(url);
const tourContract = new web3.eth.Contract(tour.abi, tour.address);
const tokenContract = new web3.eth.Contract(token.abi, token.address);
const { Alice: alice, Bob: bob, Erin: erin } = facts.accounts;
const nowhere = `0x${"00".repeat(32)}`;

// The error of a promise that must fail.
const failure = (promise) => promise.then(() => assert.fail("it did not fail"), (error) => error);

test("the chain is there", async () => {
  assert.equal(await web3.eth.getChainId(), BigInt(facts.chainId));
  assert.equal(await web3.eth.getBlockNumber(), BigInt(facts.head.number));
});

test("a block is read by number, by hash and by tag", async () => {
  const { number, hash } = facts.blocks.head;
  for (const which of [number, hash, "latest"]) {
    const block = await web3.eth.getBlock(which, true);
    assert.equal(block.hash, hash);
    assert.deepEqual(block.transactions.slice(0, 6).map((transaction) => transaction.type), [0n, 0n, 1n, 2n, 3n, 4n]);
  }
  for (const tag of ["safe", "finalized"]) assert.ok((await web3.eth.getBlock(tag)).number <= BigInt(number));
});

test("what is not there is not found", async () => {
  assert.match((await failure(web3.eth.getTransaction(nowhere))).message, /Transaction not found/);
  assert.match((await failure(web3.eth.getTransactionReceipt(nowhere))).message, /Transaction not found/);
});

test("transactions are read by hash and by place", async () => {
  const { hash, block, index } = facts.transactions["head-dynamic-fee"];
  const transaction = await web3.eth.getTransaction(hash);
  assert.deepEqual([transaction.type, transaction.chainId], [2n, BigInt(facts.chainId)]);
  assert.equal((await web3.eth.getTransactionFromBlock(block, index)).hash, hash);
});

test("receipts have a status, or a root from before Byzantium", async () => {
  const receipt = (name) => web3.eth.getTransactionReceipt(facts.transactions[name].hash);
  const created = await receipt("create-tour");
  assert.deepEqual([created.status, created.contractAddress.toLowerCase()], [1n, tour.address.toLowerCase()]);
  assert.equal((await receipt("revert-reason")).status, 0n);
  assert.equal((await receipt("create-early")).root.length, 66);
});

test("uncles are read and counted", async () => {
  const { number, hash } = facts.blocks["two-uncles"];
  assert.equal(await web3.eth.getBlockUncleCount(number), 2n);
  const uncle = await web3.eth.getUncle(number, 1);
  assert.equal(uncle.hash.length, 66);
  assert.equal((await web3.eth.getUncle(hash, 1)).hash, uncle.hash);
});

test("logs are filtered by contract, event and argument", async () => {
  const { number, hash } = facts.blocks["token-transfers"];
  const transfers = await tokenContract.getPastEvents("Transfer", { filter: { to: bob }, fromBlock: number, toBlock: number });
  assert.deepEqual(transfers.map((log) => log.returnValues.value), [10_000n * 10n ** 18n]);
  const topics = [facts.topics["Transfer(address,address,uint256)"]];
  assert.equal((await web3.eth.getPastLogs({ blockHash: hash, topics })).length, 3);
});

test("a variable and an element of a mapping are read from storage", async () => {
  assert.equal(BigInt(await web3.eth.getStorageAt(tour.address, 0)), 1234n);
  const position = web3.utils.soliditySha3({ type: "uint256", value: BigInt(erin) }, { type: "uint256", value: 1n });
  assert.equal(position, facts.slots["points of Erin"].position);
  assert.equal(BigInt(await web3.eth.getStorageAt(tour.address, position)), 5678n);
});

test("view functions answer, also about the past", async () => {
  assert.equal(await tourContract.methods.answer().call(), 1234n);
  assert.equal(await tokenContract.methods.symbol().call(), "TOUR");
  assert.equal(await tourContract.methods.count().call({}, facts.transactions["create-tour"].block), 0n);
});

test("a revert is caught with its reason", async () => {
  const reason = await failure(tourContract.methods.failWithReason().call());
  assert.equal(reason.cause.message, "execution reverted: the tour ends here");
  const panic = await failure(tourContract.methods.failWithAssert().call());
  assert.equal(panic.cause.message, "execution reverted: assert(false)");
  const custom = await failure(tourContract.methods.failWithError(99).call());
  assert.deepEqual([custom.cause.errorName, custom.cause.errorArgs.wanted], ["NotEnough", 99n]);
});

test("gas is estimated, and a revert is found while estimating", async () => {
  const gas = await tokenContract.methods.transfer(bob, 1).estimateGas({ from: alice });
  assert.ok(gas > 21_000n && gas < 100_000n, `${gas}`);
  const refused = await failure(tourContract.methods.failWithReason().estimateGas({ from: alice }));
  assert.match(refused.cause.message, /the tour ends here/);
});

test("a missing and a wrong key are told", async () => {
  for (const [where, message] of [[noKeyUrl, "project id required in the URL"], [wrongKeyUrl, "invalid project id"]]) {
    const error = await failure(new Web3(where).eth.getBlockNumber());
    assert.equal(error.statusCode, 401);
    assert.match(JSON.stringify(error.innerError ?? error.data ?? error.cause ?? error), new RegExp(message));
  }
});

test("a method that is not available says why in its message", async () => {
  const error = await failure(web3.requestManager.send({ method: "eth_newFilter", params: [{}] }));
  assert.match(error.cause?.message ?? error.message, /the method eth_newFilter does not exist\/is not available: .*filters/);
});

test("too many logs are refused, and as many as are allowed come", async () => {
  const from = { address: chatter.address, fromBlock: chatterFrom };
  const error = await failure(web3.eth.getPastLogs({ ...from, toBlock: chatterTo }));
  assert.match(error.cause.message, /query returned more than 10000 results/);
  assert.equal((await web3.eth.getPastLogs({ ...from, toBlock: chatterFits })).length, 10_000);
});

test("a batch is answered as a whole", async () => {
  const batch = new web3.BatchRequest();
  const calls = ["0x1", "0x5"].map((number) => batch.add({ method: "eth_getBlockByNumber", params: [number, false] }));
  await batch.execute();
  assert.deepEqual((await Promise.all(calls)).map((block) => block.number), ["0x1", "0x5"]);
});
