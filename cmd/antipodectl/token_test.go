package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
)

// TestWhichToken: --token-file wins over its variable, which wins over the token in the
// environment; without any of them the server names the file. A refused token
// gives one line that names the flag.
func TestWhichToken(t *testing.T) {
	var tokens []admin.Token
	var files []string
	for i := range 3 {
		token, err := admin.NewToken()
		require.NoError(t, err)
		tokens = append(tokens, token)
		files = append(files, filepath.Join(t.TempDir(), "token"))
		require.NoError(t, os.WriteFile(files[i], []byte(token+"\n"), 0o600))
	}
	accepted := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+accepted {
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(admin.ErrorDocument{Error: admin.Error{Code: admin.CodeToken, Message: "could not do it: this needs the admin token"}})
			return
		}
		_, _ = w.Write([]byte(`{"state":"up"}`))
	}))
	defer srv.Close()
	heal := func(env map[string]string, args ...string) (command.Code, string) {
		var out, errOut bytes.Buffer
		env[adminEnv] = srv.URL
		code := run(t.Context(), append([]string{"link", "heal"}, args...), func(name string) string { return env[name] }, &out, &errOut)
		return code, errOut.String()
	}
	accepted = string(tokens[0])
	env := map[string]string{tokenEnv: string(tokens[2]), tokenFileEnv: files[1]}
	code, errOut := heal(env, "--token-file", files[0])
	require.Equal(t, command.Done, code, errOut)
	code, errOut = heal(env)
	require.Equal(t, command.Failed, code)
	require.Contains(t, errOut, "--token-file")
	accepted = string(tokens[1])
	code, errOut = heal(env)
	require.Equal(t, command.Done, code, errOut)
	accepted = string(tokens[2])
	code, errOut = heal(map[string]string{tokenEnv: string(tokens[2])})
	require.Equal(t, command.Done, code, errOut)

	code, errOut = heal(map[string]string{tokenEnv: "secret"})
	require.Equal(t, command.Usage, code)
	require.Contains(t, errOut, tokenEnv)
	require.NotContains(t, errOut, "secret\"")
	code, errOut = heal(map[string]string{}, "--token-file", files[0]+".none")
	require.Equal(t, command.Failed, code)
	require.Contains(t, errOut, files[0]+".none")
	code, errOut = heal(map[string]string{}) // The server names no file.
	require.Equal(t, command.Failed, code)
	require.Contains(t, errOut, "--token-file")
}
