package operation

// Unknown names a request that is none of the protocol's operations. Every service
// refuses it, so it has no effect; still nothing repeats it, since a newer node may know
// the operation.
const Unknown = "Unknown"

// Effect is what serving an operation may change. The zero value is the careful one.
type Effect uint8

// The effects.
const (
	// Writes: it may change what is stored. It is sent at most once, and not served
	// through `-secondary`.
	Writes Effect = iota
	// Reads: serving it any number of times changes nothing.
	Reads
	// ByContent: the body decides. It is sent at most once; the service itself refuses
	// bodies that write through `-secondary`.
	ByContent
)

// EffectOf returns the effect of an operation by its name.
func EffectOf(name string) Effect { return effects[name] }

// Declared reports whether the table has an operation of this name.
func Declared(name string) bool {
	_, ok := effects[name]
	return ok
}

// TakesBody reports whether an operation has a use for a request body. No other operation
// is begun before the body that came with it is read and dropped.
func TakesBody(name string) bool { return bodies[name] }

// bodies are the operations that take one.
//
//nolint:gochecknoglobals // A table, never written.
var bodies = map[string]bool{
	"SetBlobServiceProperties": true, "SetQueueServiceProperties": true, "SetTableServiceProperties": true,
	"GetUserDelegationKey": true,
	"CreateTable":          true, "SetTableACL": true, "InsertEntity": true, "UpdateEntity": true, "MergeEntity": true,
	"EntityGroupTransaction": true,
	"SetQueueACL":            true, "PutMessage": true, "UpdateMessage": true,
	"BlobBatch": true, "SetContainerACL": true, "PutBlob": true, "SetBlobTags": true, "PutBlock": true, "PutBlockList": true,
	"PutPage": true, "AppendBlock": true, "QueryBlobContents": true,
}

// effects has every operation of protocol/blob.md 4, protocol/queue.md 5, protocol/table.md 9 and
// protocol/service.md, built or not.
//
//nolint:gochecknoglobals // A table, never written.
var effects = map[string]Effect{
	Unknown: Writes,

	"Preflight":                 Reads,
	"GetUserDelegationKey":      Writes, // Not served through -secondary.
	"GetBlobServiceProperties":  Reads,
	"GetQueueServiceProperties": Reads,
	"GetTableServiceProperties": Reads,
	"SetBlobServiceProperties":  Writes,
	"SetQueueServiceProperties": Writes,
	"SetTableServiceProperties": Writes,
	"GetBlobServiceStats":       Reads,
	"GetQueueServiceStats":      Reads,
	"GetTableServiceStats":      Reads,

	"QueryTables":            Reads,
	"QueryTable":             Reads,
	"CreateTable":            Writes,
	"DeleteTable":            Writes,
	"GetTableACL":            Reads,
	"SetTableACL":            Writes,
	"QueryEntities":          Reads,
	"QueryEntity":            Reads,
	"InsertEntity":           Writes,
	"UpdateEntity":           Writes,
	"MergeEntity":            Writes,
	"DeleteEntity":           Writes,
	"EntityGroupTransaction": ByContent,

	"ListQueues":       Reads,
	"CreateQueue":      Writes,
	"DeleteQueue":      Writes,
	"GetQueueMetadata": Reads,
	"SetQueueMetadata": Writes,
	"GetQueueACL":      Reads,
	"SetQueueACL":      Writes,
	"PutMessage":       Writes,
	"GetMessages":      Writes, // It hides what it returns.
	"PeekMessages":     Reads,
	"DeleteMessage":    Writes,
	"UpdateMessage":    Writes,
	"ClearMessages":    Writes,

	"GetAccountInformation":    Reads,
	"ListContainers":           Reads,
	"BlobBatch":                Writes, // It holds deletions and changes of tiers alone.
	"FindBlobsByTags":          Reads,
	"CreateContainer":          Writes,
	"GetContainerProperties":   Reads,
	"DeleteContainer":          Writes,
	"GetContainerMetadata":     Reads,
	"SetContainerMetadata":     Writes,
	"GetContainerACL":          Reads,
	"SetContainerACL":          Writes,
	"RestoreContainer":         Writes,
	"LeaseContainer":           Writes,
	"RenameContainer":          Writes,
	"ListBlobs":                Reads,
	"PutBlob":                  Writes,
	"GetBlob":                  Reads,
	"GetBlobProperties":        Reads,
	"DeleteBlob":               Writes,
	"GetBlobMetadata":          Reads,
	"SetBlobMetadata":          Writes,
	"SetBlobProperties":        Writes,
	"GetBlobTags":              Reads,
	"SetBlobTags":              Writes,
	"PutBlock":                 Writes,
	"PutBlockList":             Writes,
	"GetBlockList":             Reads,
	"PutPage":                  Writes,
	"GetPageRanges":            Reads,
	"AppendBlock":              Writes,
	"AppendBlobSeal":           Writes,
	"LeaseBlob":                Writes,
	"SnapshotBlob":             Writes,
	"CopyBlob":                 Writes,
	"IncrementalCopyBlob":      Writes,
	"UndeleteBlob":             Writes,
	"SetBlobTier":              Writes,
	"SetImmutabilityPolicy":    Writes,
	"DeleteImmutabilityPolicy": Writes,
	"SetLegalHold":             Writes,
	"SetBlobExpiry":            Writes,
	"QueryBlobContents":        Reads, // A POST.
}
