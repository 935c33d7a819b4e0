package identity

// formerGateway stands in the certificates of gateways that were made before gateways had their
// present name: antipode://<stamp>/door/<name>. Such certificates stay valid until they expire.
const formerGateway = "door"
