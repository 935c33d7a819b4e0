package admin

import "regexp"

// secrets are what Scrub replaces: forms in which keys, passwords, tokens and signatures are written in texts. The part
// before a secret, which says what it is, stays.
var secrets = []struct { //nolint:gochecknoglobals // A table.
	form *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*(?:PRIVATE KEY|SEED|JWT)-----.*?(?:-----?END [A-Z0-9 ]*-----?-?|\z)`), "[removed]"},
	// A password may have any sign but a space or a quote, written as a URL or not.
	{regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://)[^/\s"@]*(?::[^\s"@]*)?@(?:[^\s"/?#]*@)?`), "${1}[removed]@"},
	// Of a URL within a URL %3D is the sign =, and %26 what ends the value.
	{regexp.MustCompile(`(?i)(\b|%26|%3F)(sig|signature|code|token|access_token|api[-_]?key|secret|password|pwd|auth)(=|%3D)[^&\s"'<>;]+`), "${1}${2}${3}[removed]"},
	{regexp.MustCompile(`(?i)\b(AccountKey|SharedAccessSignature)(=|%3D)[^;\s"'<>]+`), "${1}${2}[removed]"},
	{regexp.MustCompile(`(?i)\b(SharedKey(?:Lite)?\s+[a-z0-9-]+):[A-Za-z0-9+/=]+`), "${1}:[removed]"},
	{regexp.MustCompile(`(?i)\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}`), "${1} [removed]"},
	{regexp.MustCompile(`(?i)(\b(?:[a-z_]*password|[a-z_]*secret|key1|key2|account_key|private_key|seed)\\?["']?\s*[:=]\s*\\?["']?)[^\s"',}\\]+`), "${1}[removed]"},
	// A word that follows "token:" in a sentence is shorter than a token.
	{regexp.MustCompile(`(?i)(\b(?:admin_|access_)?token\\?["']?\s*[:=]\s*\\?["']?)[^\s"',}\\]{16,}`), "${1}[removed]"},
	{regexp.MustCompile(`\bantipode-admin-[0-9a-f]{16,}`), "[removed]"},                            // The admin token.
	{regexp.MustCompile(`[A-Za-z0-9+/]{86}==`), "[removed]"},                                       // The key of an account.
	{regexp.MustCompile(`\bS[UAON][A-Z2-7]{56}\b`), "[removed]"},                                   // A seed of NATS.
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), "[removed]"}, // A JWT.
}

// Scrub removes from a text what has the form of a key, a password, a token or a signature. It removes too much rather than
// too little, and is no proof: what must not be shown is not to be put into the text.
func Scrub(text string) string {
	for _, s := range secrets {
		text = s.form.ReplaceAllString(text, s.with)
	}
	return text
}
