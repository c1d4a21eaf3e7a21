// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// Uses gas without much work, so that blocks can be as full as wanted and base fees move.
contract Load {
    /// Memory costs the square of its size, so a few instructions are worth millions of gas.
    function consume(uint256 memoryBytes) external pure returns (uint256 top) {
        assembly {
            mstore(memoryBytes, 1)
            top := mload(memoryBytes)
        }
    }
}
