// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// Something to try every statement of the documentation on: storage, failures and events.
contract Tour {
    /// Slot 0: a simple variable.
    uint256 public answer = 1234;
    /// Slot 1: a mapping. The value of a key is at keccak256(key ++ 1), both padded to 32 bytes.
    mapping(address => uint256) public points;
    /// Slot 2: counts, so that it differs from block to block.
    uint256 public count;

    error NotEnough(uint256 wanted, uint256 available);

    event Alarm() anonymous;
    event Note(address indexed by) anonymous;
    event One(uint256 value);
    event Two(address indexed by, uint256 value);
    event Three(address indexed by, uint256 indexed count, uint256 value);
    event Four(address indexed by, uint256 indexed count, uint256 indexed value, string text);

    constructor() {
        points[msg.sender] = 5678;
    }

    function bump() external returns (uint256) {
        count += 1;
        points[msg.sender] += 1;
        emit Two(msg.sender, count);
        return count;
    }

    /// A log of each number of topics; two of them have none.
    function announce(uint256 value) external {
        count += 1;
        emit Alarm();
        assembly {
            mstore(0, value)
            log0(0, 32)
        }
        emit Note(msg.sender);
        emit One(value);
        emit Two(msg.sender, value);
        emit Three(msg.sender, count, value);
        emit Four(msg.sender, count, value, "four topics");
    }

    function failWithReason() external {
        count += 1;
        require(false, "the tour ends here");
    }

    function failWithoutReason() external {
        count += 1;
        revert();
    }

    function failWithError(uint256 wanted) external view {
        revert NotEnough(wanted, points[msg.sender]);
    }

    function failWithAssert() external view {
        assert(count > type(uint256).max - 1);
    }

    function failWithOverflow() external view returns (uint256) {
        return type(uint256).max - answer + answer + 1;
    }

    function failWithDivision(uint256 divisor) external view returns (uint256) {
        return answer / divisor;
    }

    function failWithIndex(uint256 index) external pure returns (uint256) {
        uint256[] memory few = new uint256[](3);
        return few[index];
    }

    function failWithInvalid() external pure {
        assembly {
            invalid()
        }
    }

    function spin() external view returns (uint256 rounds) {
        while (gasleft() >= 0) rounds += 1;
    }
}
