// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// Counts, on a chain so young that there is neither REVERT nor STATICCALL.
contract Early {
    uint256 public count;
    address public last;

    event Counted(address indexed by, uint256 count);

    function add() external {
        count += 1;
        last = msg.sender;
        emit Counted(msg.sender, count);
    }

    /// Before Byzantium a failure takes all gas and says nothing.
    function fail() external {
        count += 1;
        assembly {
            invalid()
        }
    }
}
