// Package accounts answers the calls that all three services share at the root of
// an account: Get Service Stats, the service properties, and preflight requests, whose rules are
// among the properties.
package accounts
