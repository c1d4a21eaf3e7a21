// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// Emits more logs than anybody should ask for at once.
contract Chatter {
    /// Slot 0: how many there were so far.
    uint256 public total;

    event Said(uint256 indexed number, address indexed by, uint256 inBlock);

    function say(uint256 times) external {
        uint256 number = total;
        for (uint256 i = 0; i < times; i++) {
            emit Said(number + i, msg.sender, block.number);
        }
        total = number + times;
    }
}
