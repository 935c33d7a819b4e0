// Package outbound reads from HTTP servers that clients name, as far as the operator lists them: see List.
//
// Invariant: no client makes this process connect to an address that the list does not permit, whatever name, spelling of
// an address, DNS answer or redirect it uses (SSRF). Only what is in the request goes out: no credentials, cookies or proxy
// settings of this process.
package outbound
