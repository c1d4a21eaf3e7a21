"""web3.py against a gateway with the demo chain."""

import json
import os
import unittest

import requests
from eth_utils import keccak, to_bytes
from web3 import Web3
from web3.exceptions import (
    BlockNotFound,
    ContractCustomError,
    ContractLogicError,
    ContractPanicError,
    TransactionNotFound,
    Web3RPCError,
)

URL = os.environ["CHAINGATE_URL"]
NO_KEY_URL = URL.rsplit("/", 1)[0]
with open(os.environ["CHAINGATE_FACTS"], encoding="utf-8") as file:
    FACTS = json.load(file)

ALICE, BOB, ERIN = (FACTS["accounts"][name] for name in ("Alice", "Bob", "Erin"))


class Web3Py(unittest.TestCase):
    def setUp(self):
        self.w3 = Web3(Web3.HTTPProvider(URL))
        self.tour = self.w3.eth.contract(**FACTS["contracts"]["Tour"])
        self.token = self.w3.eth.contract(**FACTS["contracts"]["Token"])

    def receipt(self, name):
        return self.w3.eth.get_transaction_receipt(FACTS["transactions"][name]["hash"])

    def test_the_chain_is_there(self):
        self.assertTrue(self.w3.is_connected())
        self.assertEqual(self.w3.eth.chain_id, FACTS["chainId"])
        self.assertEqual(self.w3.eth.block_number, FACTS["head"]["number"])

    def test_a_block_is_read_by_number_by_hash_and_by_tag(self):
        head = FACTS["blocks"]["head"]
        for which in (head["number"], head["hash"], "latest"):
            block = self.w3.eth.get_block(which, full_transactions=True)
            self.assertEqual(block.hash.to_0x_hex(), head["hash"])
            self.assertEqual([tx.type for tx in block.transactions[:6]], [0, 0, 1, 2, 3, 4])
        for tag in ("safe", "finalized"):
            self.assertLessEqual(self.w3.eth.get_block(tag).number, head["number"])

    def test_what_is_not_there_is_not_found(self):
        nowhere = "0x" + "00" * 32
        with self.assertRaises(BlockNotFound):
            self.w3.eth.get_block(FACTS["head"]["number"] + 1)
        with self.assertRaises(TransactionNotFound):
            self.w3.eth.get_transaction(nowhere)
        with self.assertRaises(TransactionNotFound):
            self.w3.eth.get_transaction_receipt(nowhere)

    def test_transactions_are_read_by_hash_and_by_place(self):
        fact = FACTS["transactions"]["head-delegation"]
        transaction = self.w3.eth.get_transaction(fact["hash"])
        self.assertEqual((transaction.type, len(transaction.authorizationList)), (4, 1))
        placed = self.w3.eth.get_transaction_by_block(fact["block"], fact["index"])
        self.assertEqual(placed.hash.to_0x_hex(), fact["hash"])

    def test_receipts_have_a_status_or_a_root_from_before_byzantium(self):
        created = self.receipt("create-tour")
        self.assertEqual((created.status, created.contractAddress), (1, self.tour.address))
        self.assertEqual(self.receipt("revert-reason").status, 0)
        early = self.receipt("create-early")
        self.assertNotIn("status", early)
        self.assertIn("root", early)
        self.assertEqual(len(self.w3.eth.get_block_receipts(FACTS["blocks"]["token-transfers"]["number"])), 3)

    def test_an_uncle_is_read(self):
        params = [hex(FACTS["blocks"]["two-uncles"]["number"]), "0x1"]
        uncle = self.w3.provider.make_request("eth_getUncleByBlockNumberAndIndex", params)["result"]
        self.assertEqual(len(uncle["hash"]), 66)

    def test_logs_are_filtered_by_contract_event_and_argument(self):
        fact = FACTS["blocks"]["token-transfers"]
        number = fact["number"]
        transfers = self.token.events.Transfer.get_logs(
            from_block=number, to_block=number, argument_filters={"to": BOB}
        )
        self.assertEqual([log.args.value for log in transfers], [10_000 * 10**18])
        topics = [FACTS["topics"]["Transfer(address,address,uint256)"]]
        self.assertEqual(len(self.w3.eth.get_logs({"blockHash": fact["hash"], "topics": topics})), 3)

    def test_a_variable_and_an_element_of_a_mapping_are_read_from_storage(self):
        value = self.w3.eth.get_storage_at(self.tour.address, 0)
        self.assertEqual(int.from_bytes(value, "big"), 1234)
        position = keccak(to_bytes(hexstr=ERIN).rjust(32, b"\0") + (1).to_bytes(32, "big"))
        self.assertEqual("0x" + position.hex(), FACTS["slots"]["points of Erin"]["position"])
        value = self.w3.eth.get_storage_at(self.tour.address, int.from_bytes(position, "big"))
        self.assertEqual(int.from_bytes(value, "big"), 5678)

    def test_view_functions_answer_also_about_the_past(self):
        self.assertEqual(self.tour.functions.answer().call(), 1234)
        self.assertEqual(self.token.functions.symbol().call(), "TOUR")
        created = FACTS["transactions"]["create-tour"]["block"]
        self.assertEqual(self.tour.functions.count().call(block_identifier=created), 0)

    def test_a_revert_is_caught_with_its_reason(self):
        with self.assertRaises(ContractLogicError) as caught:
            self.tour.functions.failWithReason().call()
        self.assertIn("the tour ends here", str(caught.exception))
        with self.assertRaises(ContractPanicError):
            self.tour.functions.failWithAssert().call()
        with self.assertRaises(ContractCustomError) as caught:
            self.tour.functions.failWithError(99).call()
        selector, arguments = caught.exception.data[:10], bytes.fromhex(caught.exception.data[10:])
        self.assertEqual(selector, "0x" + keccak(text="NotEnough(uint256,uint256)")[:4].hex())
        self.assertEqual(self.w3.codec.decode(["uint256", "uint256"], arguments), (99, 0))

    def test_gas_is_estimated_and_a_revert_is_found_while_estimating(self):
        gas = self.token.functions.transfer(BOB, 1).estimate_gas({"from": ALICE})
        self.assertTrue(21_000 < gas < 100_000, gas)
        with self.assertRaises(ContractLogicError) as caught:
            self.tour.functions.failWithReason().estimate_gas()
        self.assertIn("the tour ends here", str(caught.exception))

    def test_a_missing_and_a_wrong_key_are_told(self):
        for url, message in ((NO_KEY_URL, "project id required in the URL"), (NO_KEY_URL + "/nobody", "invalid project id")):
            keyless = Web3(Web3.HTTPProvider(url, exception_retry_configuration=None))
            with self.assertRaises(requests.HTTPError) as caught:
                keyless.eth.block_number
            response = caught.exception.response
            self.assertEqual((response.status_code, response.json()["error"]["message"]), (401, message))

    def test_a_method_that_is_not_available_says_why_in_its_message(self):
        with self.assertRaises(Exception) as caught:
            self.w3.manager.request_blocking("eth_newFilter", [{}])
        self.assertRegex(str(caught.exception), "the method eth_newFilter does not exist/is not available: .*filters")

    def test_too_many_logs_are_refused_and_as_many_as_are_allowed_come(self):
        first = FACTS["blocks"]["chatter-begins"]["number"]
        logs = {"address": FACTS["contracts"]["Chatter"]["address"], "fromBlock": first, "toBlock": first + 59}
        with self.assertRaises(Web3RPCError) as caught:
            self.w3.eth.get_logs(logs)
        error = caught.exception.rpc_response["error"]
        self.assertEqual((error["code"], error["message"]), (-32005, "query returned more than 10000 results"))
        self.assertEqual(len(self.w3.eth.get_logs({**logs, "toBlock": first + 49})), 10_000)

    def test_a_batch_is_answered_as_a_whole(self):
        with self.w3.batch_requests() as batch:
            for number in (1, 5, 9):
                batch.add(self.w3.eth.get_block(number))
            blocks = batch.execute()
        self.assertEqual([block.number for block in blocks], [1, 5, 9])


if __name__ == "__main__":
    unittest.main()
