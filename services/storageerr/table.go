package storageerr

// Rows are named by cause, since one code may answer with two statuses.
var (
	AccountNotFound       = Row{404, "ResourceNotFound", "The specified resource does not exist."}
	AuthenticationFailed  = Row{403, "AuthenticationFailed", "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."}
	InvalidAuthentication = Row{400, "InvalidAuthenticationInfo", "Authentication information is not given in the correct format. Check the value of Authorization header."}
	NoAuthentication      = Row{401, "NoAuthenticationInformation", "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."}
	BearerRefused         = Row{401, "InvalidAuthenticationInfo", "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."}
	NotAuthorized         = Row{403, "AuthorizationFailure", "This request is not authorized to perform this operation."}
	PermissionMismatch    = Row{403, "AuthorizationPermissionMismatch", "This request is not authorized to perform this operation using this permission."}
	ResourceTypeMismatch  = Row{403, "AuthorizationResourceTypeMismatch", "This request is not authorized to perform this operation using this resource type."}
	ServiceMismatch       = Row{403, "AuthorizationServiceMismatch", "This request is not authorized to perform this operation using this service."}
	SourceIPMismatch      = Row{403, "AuthorizationSourceIPMismatch", "This request is not authorized to perform this operation using this source IP"}
	ProtocolMismatch      = Row{403, "AuthorizationProtocolMismatch", "This request is not authorized to perform this operation using this protocol."}
	WriteOnSecondary      = Row{403, "InsufficientAccountPermissions", "Write operations are not allowed."}
	ReservedContainer     = Row{403, "InsufficientAccountPermissions", "The account being accessed does not have sufficient permissions to execute this operation."}
	ReadsDisabled         = Row{403, "InsufficientAccountPermissions", "Read operations are currently disabled."}
	OperationInProgress   = Row{409, "StorageAccountOperationInProgress", "An operation for the account is in progress."}
	AccountAlreadyExists  = Row{409, "AccountAlreadyExists", "The specified account already exists."}

	InvalidInput           = Row{400, "InvalidInput", "One of the request inputs is not valid."}
	OutOfRangeInput        = Row{400, "OutOfRangeInput", "One of the request inputs is out of range."}
	NameLengthOutOfRange   = Row{400, "OutOfRangeInput", "The specified resource name length is not within the permissible limits."}
	InvalidResourceName    = Row{400, "InvalidResourceName", "The specifed resource name contains invalid characters."}
	InvalidURI             = Row{400, "InvalidUri", "The requested URI does not represent any resource on the server."}
	NoHostInformation      = Row{400, "HostInformationNotPresent", "The required host information is not present in the request. You must send a non-empty Host header or include the absolute URI in the request line."}
	NoCORSHeader           = Row{400, "InvalidHeaderValue", "A required CORS header is not present."}
	CORSPreflightFailure   = Row{403, "CorsPreflightFailure", "CORS not enabled or no matching rule found for this request."}
	InvalidHeaderValue     = Row{400, "InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format."}
	MissingRequiredHeader  = Row{400, "MissingRequiredHeader", "A required HTTP header was not specified."}
	UnsupportedHeader      = Row{400, "UnsupportedHeader", "One of the HTTP headers specified in the request is not supported."}
	InvalidQueryParameter  = Row{400, "InvalidQueryParameterValue", "Value for one of the query parameters specified in the request URI is invalid."}
	MissingQueryParameter  = Row{400, "MissingRequiredQueryParameter", "A query parameter that's mandatory for this request is not specified."}
	InvalidXMLNodeValue    = Row{400, "InvalidXmlNodeValue", "The value provided for one of the XML nodes in the request body was not in the correct format."}
	MissingXMLNode         = Row{400, "MissingRequiredXmlNode", "A required XML node was not specified in the request body."}
	InvalidXMLDocument     = Row{400, "InvalidXmlDocument", "XML specified is not syntactically valid."}
	OutOfRangeQueryParam   = Row{400, "OutOfRangeQueryParameterValue", "One of the query parameters specified in the request URI is outside the permissible range."}
	MissingContentLength   = Row{411, "MissingContentLengthHeader", "The Content-Length header was not specified."}
	RequestBodyTooLarge    = Row{413, "RequestBodyTooLarge", "The request body is too large and exceeds the maximum permissible limit."}
	InvalidHTTPVerb        = Row{400, "InvalidHttpVerb", "The HTTP verb specified was not recognized by the server."}
	UnsupportedHTTPVerb    = Row{405, "UnsupportedHttpVerb", "The resource doesn't support the specified HTTP verb."}
	NotImplemented         = Row{501, "NotImplemented", "The requested operation is not implemented on the specified resource."}
	InternalError          = Row{500, "InternalError", "The server encountered an internal error. Please retry the request."}
	OperationTimedOut      = Row{500, "OperationTimedOut", "The operation could not be completed within the permitted time."}
	ServerBusy             = Row{503, "ServerBusy", "The server is currently unable to receive requests. Please retry your request."}
	ConditionNotMet        = Row{412, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met."}
	NotModified            = Row{304, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met."}
	MultipleConditions     = Row{400, "MultipleConditionHeadersNotSupported", "Multiple condition headers are not supported."}
	UnsatisfiableCondition = Row{400, "UnsatisfiableCondition", "The request includes an unsatisfiable condition for this operation."}
	InvalidMD5             = Row{400, "InvalidMd5", "The MD5 value specified in the request is invalid. The MD5 value must be 128 bits and Base64-encoded."}
	MD5Mismatch            = Row{400, "Md5Mismatch", "The MD5 value specified in the request did not match with the MD5 value calculated by the server."}
	CRC64Mismatch          = Row{400, "Crc64Mismatch", "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server."}
	BothCRC64AndMD5        = Row{400, "BothCrc64AndMd5HeaderPresent", "Both x-ms-content-crc64 header and Content-MD5 header are present."}
	InvalidMetadata        = Row{400, "InvalidMetadata", "The specified metadata is invalid. It includes characters that are not permitted."}
	EmptyMetadataKey       = Row{400, "EmptyMetadataKey", "The key for one of the metadata key-value pairs is empty."}
	MetadataTooLarge       = Row{400, "MetadataTooLarge", "The size of the specified metadata exceeds the maximum size permitted."}

	// Table service.
	TableAlreadyExists    = Row{409, "TableAlreadyExists", "The table specified already exists."}
	TableBeingDeleted     = Row{409, "TableBeingDeleted", "The specified table is being deleted."}
	TableNotFound         = Row{404, "TableNotFound", "The table specified does not exist."}
	ResourceNotFound      = Row{404, "ResourceNotFound", "The specified resource does not exist."}
	EntityAlreadyExists   = Row{409, "EntityAlreadyExists", "The specified entity already exists."}
	UpdateConditionNotMet = Row{412, "UpdateConditionNotSatisfied", "The update condition specified in the request was not satisfied."}
	PropertiesNeedValue   = Row{400, "PropertiesNeedValue", "The values are not specified for all properties in the entity."}
	TooManyProperties     = Row{400, "TooManyProperties", "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties."}
	PropertyNameInvalid   = Row{400, "PropertyNameInvalid", "The property name is invalid."}
	PropertyNameTooLong   = Row{400, "PropertyNameTooLong", "The property name exceeds the maximum allowed length (255)."}
	PropertyValueTooLarge = Row{400, "PropertyValueTooLarge", "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less."}
	EntityTooLarge        = Row{400, "EntityTooLarge", "The entity is larger than the maximum allowed size (1MB)."}
	DuplicateProperties   = Row{400, "DuplicatePropertiesSpecified", "A property is specified more than one time."}
	QuerySyntax           = Row{400, "InvalidInput", "Bad Request - Error in query syntax."}
	TableMethodNotAllowed = Row{405, "MethodNotAllowed", "The requested method is not allowed on the specified resource."}
	AtomNotSupported      = Row{415, "AtomFormatNotSupported", "Atom format is not supported."}
	JSONVerboseNotSupport = Row{415, "JsonVerboseFormatNotSupported", "JSON Verbose format is not supported."}
	JSONNotSupported      = Row{415, "JsonFormatNotSupported", "JSON format is not supported."}
	MediaTypeNotSupported = Row{415, "MediaTypeNotSupported", "None of the provided media types are supported."}
	BatchTooLong          = Row{400, "InvalidInput", "The batch request operation exceeds the maximum 100 changes per change set."}
	BatchPartitionsDiffer = Row{400, "CommandsInBatchActOnDifferentPartitions", "All commands in a batch must operate on same entity group."}
	BatchRowTwice         = Row{400, "InvalidDuplicateRow", "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."}
	BatchEffectTooLarge   = Row{400, "ContentLengthExceeded", "The entities that the batch request leaves behind exceed what one transaction may write."}
	XMethodNotUsingPost   = Row{400, "XMethodNotUsingPost", "The request uses X-HTTP-Method with an HTTP verb other than POST."}
	XMethodIncorrectValue = Row{400, "XMethodIncorrectValue", "The specified X-HTTP-Method is invalid."}
	XMethodIncorrectCount = Row{400, "XMethodIncorrectCount", "More than one X-HTTP-Method is specified."}

	// Blob service.
	ContainerAlreadyExists = Row{409, "ContainerAlreadyExists", "The specified container already exists."}
	ContainerNotFound      = Row{404, "ContainerNotFound", "The specified container does not exist."}
	ContainerBeingDeleted  = Row{409, "ContainerBeingDeleted", "The specified container is being deleted. Try operation later."}
	BlobAlreadyExists      = Row{409, "BlobAlreadyExists", "The specified blob already exists."}
	BlobNotFound           = Row{404, "BlobNotFound", "The specified blob does not exist."}
	InvalidRange           = Row{416, "InvalidRange", "The range specified is invalid for the current size of the resource."}
	BlockCountExceedsLimit = Row{409, "BlockCountExceedsLimit", "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks."}
	BlobOverwritten        = Row{409, "BlobOverwritten", "The blob has been recreated since it was last read."}
	InvalidBlobOrBlock     = Row{400, "InvalidBlobOrBlock", "The specified blob or block content is invalid."}
	InvalidBlockList       = Row{400, "InvalidBlockList", "The specified block list is invalid."}
	BlockListTooLong       = Row{400, "BlockListTooLong", "The block list may not contain more than 50,000 blocks."}
	SnapshotsPresent       = Row{409, "SnapshotsPresent", "This operation is not permitted because the blob has snapshots."}
	LeaseNotPresentOnBlob  = Row{412, "LeaseNotPresentWithBlobOperation", "There is currently no lease on the blob."}

	// Of append blobs.
	BlobIsSealed              = Row{409, "BlobIsSealed", "The specified blob is sealed and its contents can't be modified unless the blob is re-created after a delete."}
	AppendPositionNotMet      = Row{412, "AppendPositionConditionNotMet", "The append position condition specified was not met."}
	MaxBlobSizeNotMet         = Row{412, "MaxBlobSizeConditionNotMet", "The max blob size condition specified was not met."}
	AppendedBlocksExceedLimit = Row{409, "BlockCountExceedsLimit", "The committed block count cannot exceed the maximum limit of 50,000 blocks."}
	AppendBlobTooNew          = Row{409, "FeatureVersionMismatch", "The operation for AppendBlob requires at least version 2015-02-21."}

	BatchPartsExceeded = Row{400, "ExceedsMaxBatchRequestCount", "The batch operation exceeds maximum number of allowed subrequests."}
	MixedBatch         = Row{400, "AllBatchSubRequestsShouldBeSameApi", "All batch subrequests should be the same api."}

	// Of leases, of blobs and of containers alike but for the first two.
	LeaseMismatchOnBlob                = Row{412, "LeaseIdMismatchWithBlobOperation", "The lease ID specified did not match the lease ID for the blob."}
	LeaseMismatchOnContainer           = Row{412, "LeaseIdMismatchWithContainerOperation", "The lease ID specified did not match the lease ID for the container."}
	LeaseIDMissing                     = Row{412, "LeaseIdMissing", "There is currently a lease on the resource and no lease ID was specified in the request."}
	LeaseLost                          = Row{412, "LeaseLost", "A lease ID was specified, but the lease for the resource has expired."}
	LeaseAlreadyPresent                = Row{409, "LeaseAlreadyPresent", "There is already a lease present."}
	LeaseIDMismatchWithLease           = Row{409, "LeaseIdMismatchWithLeaseOperation", "The lease ID specified did not match the lease ID for the resource."}
	LeaseNotPresentWithLease           = Row{409, "LeaseNotPresentWithLeaseOperation", "There is currently no lease on the resource."}
	LeaseIsBreakingAndCannotBeAcquired = Row{409, "LeaseIsBreakingAndCannotBeAcquired", "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken."}
	LeaseIsBreakingAndCannotBeChanged  = Row{409, "LeaseIsBreakingAndCannotBeChanged", "The lease ID matched, but the lease is currently in breaking state and cannot be changed."}
	LeaseIsBrokenAndCannotBeRenewed    = Row{409, "LeaseIsBrokenAndCannotBeRenewed", "The lease ID matched, but the lease has been broken explicitly and cannot be renewed."}

	UnauthorizedBlobOverwrite  = Row{403, "UnauthorizedBlobOverwrite", "This request is not authorized to perform blob overwrites."}
	LeaseNotPresentOnContainer = Row{412, "LeaseNotPresentWithContainerOperation", "There is currently no lease on the container."}
	BlobArchived               = Row{409, "BlobArchived", "This operation is not permitted on an archived blob."}
	BlobBeingRehydrated        = Row{409, "BlobBeingRehydrated", "This operation is not permitted because the blob is being rehydrated."}
	InvalidBlobType            = Row{409, "InvalidBlobType", "The blob type is invalid for this operation."}
	TagsTooLarge               = Row{400, "TagsTooLarge", "The tags specified exceed the maximum permissible limit."}
	EmptyTagName               = Row{400, "EmptyTagName", "The name of one of the tag key-value pairs is empty."}
	DuplicateTagNames          = Row{400, "DuplicateTagNames", "The tags specified contain duplicate names."}
	InvalidTag                 = Row{400, "InvalidTag", "The tags specified are invalid. It contains characters that are not permitted."}
	PublicAccessNotPermitted   = Row{409, "PublicAccessNotPermitted", "Public access is not permitted on this storage account."}
	ConditionsNotSupported     = Row{400, "ConditionHeadersNotSupported", "Condition headers are not supported."}

	// CannotVerifyCopySource has the status of a source that was not reached: see CopySourceRefused.
	CannotVerifyCopySource = Row{500, "CannotVerifyCopySource", "Could not verify the copy source within the specified time. Examine the HTTP status code and message for more information about the failure."}

	// Of copies.
	SourceConditionNotMet          = Row{412, "SourceConditionNotMet", "The source condition specified using HTTP conditional header(s) is not met."}
	TargetConditionNotMet          = Row{412, "TargetConditionNotMet", "The target condition specified using HTTP conditional header(s) is not met."}
	NoPendingCopyOperation         = Row{409, "NoPendingCopyOperation", "There is currently no pending copy operation."}
	InvalidSourceBlobType          = Row{409, "InvalidSourceBlobType", "The copy source blob type is invalid."}
	CopyAcrossAccountsNotSupported = Row{400, "CopyAcrossAccountsNotSupported", "The copy source account and destination account must be the same."}
	BothTagsAndSourceTags          = Row{400, "BothUserTagsAndSourceTagsCopyPresentException", "The tags of the request and those of the copy source cannot both be asked for."}

	// Queue service.
	QueueAlreadyExists = Row{409, "QueueAlreadyExists", "The specified queue already exists."}
	QueueBeingDeleted  = Row{409, "QueueBeingDeleted", "The specified queue is being deleted."}
	QueueNotFound      = Row{404, "QueueNotFound", "The specified queue does not exist."}
	MessageNotFound    = Row{404, "MessageNotFound", "The specified message does not exist."}
	MessageTooLarge    = Row{400, "MessageTooLarge", "The message exceeds the maximum allowed size."}
	PopReceiptMismatch = Row{400, "PopReceiptMismatch", "The specified pop receipt did not match the pop receipt for a dequeued message."}
)
