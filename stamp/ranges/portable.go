package ranges

// Portable is a Command that a node that does not lead the range passes to the node that
// does: it travels as bytes, and what its evaluation found comes back as bytes. The
// caller's value is never evaluated then.
type Portable interface {
	Command
	// Kind is the key into Commands at the leader's node. Nodes of two versions exchange
	// commands: a kind keeps its meaning.
	Kind() string
	// Encode is the command.
	Encode() []byte
	// EncodeResult is what the caller wants to know, at the leader after Evaluate took
	// effect there. It may be nil.
	EncodeResult() []byte
	// DecodeResult takes that, at the caller. After an error nothing can be said of the
	// result; the command took effect.
	DecodeResult(b []byte) error
}

// Commands decodes commands that come from other nodes, by kind. The decoders may be
// called concurrently; what they return may keep the bytes.
type Commands map[string]func(body []byte) (Portable, error)
