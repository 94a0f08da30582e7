package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	saltern "example.org/saltern/client"
)

const iterations = 600_000
const format = "aes-256-gcm"

// person has a password, and makes the generated client's requests without a session.
type person struct {
	client      *saltern.APIClient
	anybody     context.Context
	userid      string
	passwordKey string
}

// device is a session of the person.
type device struct {
	*saltern.APIClient
	context.Context
}

func fail(text string, values ...any) {
	fmt.Fprintln(os.Stderr, "expected "+fmt.Sprintf(text, values...))
	os.Exit(1)
}

func check(holds bool, text string, values ...any) {
	if !holds {
		fail(text, values...)
	}
}

func same[T comparable](actual, expected T, name string) {
	check(actual == expected, "%s %v, got %v", name, expected, actual)
}

// done is the value of a call that must succeed.
func done[T any](value T, response *http.Response, err error) T {
	if err != nil {
		body := []byte{}
		var problem *saltern.GenericOpenAPIError
		if errors.As(err, &problem) {
			body = problem.Body()
		}
		fail("success, got %v %s", err, body)
	}
	return value
}

// refused checks that the call was refused, and decodes its problem.
func refused[T any](status int, code string, response *http.Response, err error) T {
	var failure *saltern.GenericOpenAPIError
	check(errors.As(err, &failure), "%d %s, got %v", status, code, err)
	same(response.StatusCode, status, "status")
	var problem saltern.Problem
	check(json.Unmarshal(failure.Body(), &problem) == nil, "a problem, got %s", failure.Body())
	same(problem.Code, code, "code")
	typed, ok := failure.Model().(T)
	check(ok, "a problem of its type, got %T", failure.Model())
	return typed
}

func random(size int) []byte {
	bytes := make([]byte, size)
	if _, err := rand.Read(bytes); err != nil {
		fail("random bytes: %v", err)
	}
	return bytes
}

func sealed(size int) string { return base64.StdEncoding.EncodeToString(random(size)) }

func uuid() string {
	b := random(16)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newPerson trusts the server's certificate alone.
func newPerson() *person {
	certificate, err := os.ReadFile(os.Getenv("SALTERN_TEST_CERTIFICATE"))
	roots := x509.NewCertPool()
	check(err == nil && roots.AppendCertsFromPEM(certificate), "a certificate, got %v", err)
	configuration := saltern.NewConfiguration()
	configuration.Servers = saltern.ServerConfigurations{{URL: os.Getenv("SALTERN_TEST_URL")}}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	configuration.HTTPClient = &http.Client{Transport: transport}
	client := saltern.NewAPIClient(configuration)
	return &person{client: client, anybody: context.Background(), userid: "go-" + uuid() + "@example.org"}
}

func (p *person) device(token string) device {
	return device{p.client, context.WithValue(context.Background(), saltern.ContextAccessToken, token)}
}

// pbkdf2 derives 32 bytes, which is one block (RFC 8018, section 5.2).
func pbkdf2(password, salt string, iterations int32) []byte {
	mac := hmac.New(sha256.New, []byte(password))
	mac.Write([]byte(salt))
	mac.Write(binary.BigEndian.AppendUint32(nil, 1))
	block := mac.Sum(nil)
	result := append([]byte{}, block...)
	for count := int32(1); count < iterations; count++ {
		mac.Reset()
		mac.Write(block)
		block = mac.Sum(block[:0])
		for index := range result {
			result[index] ^= block[index]
		}
	}
	return result
}

// key is derived as docs/protocol.md defines it, after its test vector.
func (p *person) key(password string) string {
	vector := hex.EncodeToString(pbkdf2("S3kr3t!", "com.example.MyGreatSite:robnapier@gmail.com", 10_000))
	same(vector, "f68a328661383beb161e7fc403de2d1507ee84d670d5064d508991a240853ded", "the test vector")
	request := *saltern.NewKDFRequest(p.userid)
	kdf := done(p.client.AccountsAPI.GetKDFParameters(p.anybody).KDFRequest(request).Execute())
	same(kdf.Algorithm, "PBKDF2-HMAC-SHA256", "the algorithm")
	same(kdf.KeyLength, 32, "a key length of")
	same(kdf.Salt, kdf.SaltPrefix+p.userid, "the salt")
	return base64.StdEncoding.EncodeToString(pbkdf2(password, kdf.Salt, kdf.Iterations))
}

func (p *person) logIn(request *saltern.LoginRequest) (*saltern.Login, *http.Response, error) {
	return p.client.SessionsAPI.LogIn(p.anybody).LoginRequest(*request).Execute()
}
