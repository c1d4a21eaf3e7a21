// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// What a contract sees of the block that it runs in.
contract Clock {
    /// Slot 0: the block in which somebody looked last.
    uint256 public lookedAt;

    function look() external {
        lookedAt = block.number;
    }

    function read()
        external
        view
        returns (uint256 number, uint256 timestamp, uint256 baseFee, uint256 blobBaseFee, uint256 random)
    {
        return (block.number, block.timestamp, block.basefee, block.blobbasefee, block.prevrandao);
    }

    function chain() external view returns (uint256) {
        return block.chainid;
    }

    /// The first blob of the transaction; zero if it has none.
    function blob() external view returns (bytes32) {
        return blobhash(0);
    }
}
