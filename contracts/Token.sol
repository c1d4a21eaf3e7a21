// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// A token by ERC-20. All of it belongs to one owner at first.
contract Token {
    /// Slot 0.
    mapping(address => uint256) public balanceOf;
    /// Slot 1.
    mapping(address => mapping(address => uint256)) public allowance;
    /// Slot 2.
    uint256 public totalSupply;

    string public constant name = "Tour Token";
    string public constant symbol = "TOUR";
    uint8 public constant decimals = 18;

    error InsufficientBalance(address owner, uint256 balance, uint256 wanted);
    error InsufficientAllowance(address spender, uint256 allowed, uint256 wanted);

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    constructor(address owner, uint256 supply) {
        totalSupply = supply;
        balanceOf[owner] = supply;
        emit Transfer(address(0), owner, supply);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        move(msg.sender, to, value);
        return true;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        if (allowed < value) revert InsufficientAllowance(msg.sender, allowed, value);
        allowance[from][msg.sender] = allowed - value;
        move(from, to, value);
        return true;
    }

    function move(address from, address to, uint256 value) private {
        uint256 balance = balanceOf[from];
        if (balance < value) revert InsufficientBalance(from, balance, value);
        balanceOf[from] = balance - value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}
