// Package accounts answers the calls that all three services share at the root of
// an account: Get Service Stats, and the service properties once they are built.
package accounts
