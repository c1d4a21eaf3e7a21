// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// Cannot be created.
contract Unborn {
    constructor() {
        revert("not to be born");
    }
}
