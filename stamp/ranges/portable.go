package ranges

// Portable is a Command that can be forwarded from a node that does not lead the range to the
// node that does. The command is sent as bytes, and the result of its evaluation is returned
// as bytes. The caller's value is then never evaluated.
type Portable interface {
	Command
	// Kind is the key into Commands at the leader's node. Nodes of two versions exchange
	// commands: a kind keeps its meaning.
	Kind() string
	// Encode encodes the command.
	Encode() []byte
	// EncodeResult encodes what the caller wants to know. It is called at the leader, after
	// the command took effect. The result may be nil.
	EncodeResult() []byte
	// DecodeResult takes at the caller what EncodeResult returned. After an error the result
	// is unknown, and the command took effect.
	DecodeResult(b []byte) error
}

// Commands decodes commands that come from other nodes, by kind. The decoders may be
// called concurrently; what they return may keep the bytes.
type Commands map[string]func(body []byte) (Portable, error)
