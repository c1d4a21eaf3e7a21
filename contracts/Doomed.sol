// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// Ends itself when told to. Until Cancun that removes it; from there on only its ether goes.
contract Doomed {
    uint256 public born = block.number;

    constructor() payable {}

    function end(address payable heir) external {
        selfdestruct(heir);
    }
}
