package harness

// Unlimited are the settings of a process without limits of how often people may
// do what: for tests in which a crowd has one address, or asks as fast as it can.
var Unlimited = []string{
	"LINEKEEPER_LIMIT_ENTER_ADDRESS=off",
	"LINEKEEPER_LIMIT_ENTER_NETWORK=off",
	"LINEKEEPER_LIMIT_ENTER_MEMBER=off",
	"LINEKEEPER_LIMIT_ORDER_MEMBER=off",
	"LINEKEEPER_LIMIT_POLL_MEMBER=off",
	"LINEKEEPER_LIMIT_WRONG_CREDENTIAL=off",
}
