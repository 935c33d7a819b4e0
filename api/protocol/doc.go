// Package protocol is what the three services share of the wire: service
// versions, request targets, query parameters, common headers, dates, entity
// tags, conditions and error bodies. It knows no Echo and holds no state but a
// request id generator.
//
// Invariant: the bytes a client addressed and signed are never rewritten. Paths
// and queries are cut from the request line as sent; nothing here cleans, merges,
// decodes and re-encodes, or drops a part of them. A condition that was sent is
// evaluated or refused, never ignored.
//
// A request passes through in this order: [ParseTarget] names the account, the
// service and the location, [ServiceVersion] the rules that apply, [ParseQuery]
// opens the parameters, and [SetCommonHeaders] begins the answer. Whatever fails
// afterwards ends in [WriteError].
package protocol
