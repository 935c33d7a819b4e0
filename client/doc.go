// Package client makes clients of the Azure SDK for Go read from both endpoints of an account whose secondary can be read
// (protocol/service.md 13): a [Policy] of azcore's pipeline that sends each try of a request to the endpoint that the
// [LocationMode] names, and asks a [RetryPolicy] what to do after one that failed.
//
//	p, err := client.New(geo.Blob, "https://pictures.blob.example.net", client.Options{Mode: client.PrimaryThenSecondary})
//	o := &azblob.ClientOptions{ClientOptions: azcore.ClientOptions{PerCallPolicies: []policy.Policy{p}}}
//	c, err := azblob.NewClientWithSharedKeyCredential("https://pictures.blob.example.net", cred, o)
//
// It belongs among the PerCallPolicies, which run before the request is signed. It retries in place of azcore's policy,
// which makes one try each time it is asked.
//
// The endpoints are names, not places: after a failover the primary's name stands for the other location, and nothing in the
// client changes.
//
// Invariant: a request that writes goes to the primary endpoint only, whatever the mode or a retry policy says. A
// caller gets the answer to one try, unchanged. An answer of the secondary may be older than the primary's would have
// been, as Get Service Stats shows.
package client
