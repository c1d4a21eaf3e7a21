// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// Code for accounts that delegate to it (EIP-7702): several calls in one transaction.
contract Wallet {
    struct Call {
        address to;
        uint256 value;
        bytes data;
    }

    error OnlyOwner(address caller);
    error CallFailed(uint256 index, bytes reason);

    event Executed(address indexed owner, uint256 calls);

    receive() external payable {}

    /// Only the account itself may say what it does.
    function execute(Call[] calldata calls) external payable {
        if (msg.sender != address(this)) revert OnlyOwner(msg.sender);
        for (uint256 i = 0; i < calls.length; i++) {
            (bool done, bytes memory reason) = calls[i].to.call{value: calls[i].value}(calls[i].data);
            if (!done) revert CallFailed(i, reason);
        }
        emit Executed(address(this), calls.length);
    }

    /// Anybody may ask; shows that the code runs at the account's own address.
    function ping() external {
        emit Executed(address(this), 0);
    }
}
