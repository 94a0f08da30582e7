// An account's life, led by the Go client that openapi-generator makes of openapi.yaml.
package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"time"

	saltern "example.org/saltern/client"
)

// highRevision needs 53 bits: a database that was restored several times has revisions above it.
const highRevision = int64(1) << 52

type life struct {
	*person
	device
	ids []string
}

func content() saltern.ItemContent {
	content := saltern.NewItemContent(format, sealed(60))
	content.SetCollection("notes")
	content.SetTitle(sealed(40))
	content.SetIterations(math.MaxInt32)
	return *content
}

func tag(revision int64) string { return fmt.Sprintf("\"%d\"", revision) }

func kdf() saltern.NewKDF { return *saltern.NewNewKDF(iterations) }

func (l *life) register() {
	service := done(l.client.ServiceAPI.DescribeService(l.anybody).Execute())
	found := false
	for _, each := range service.Formats {
		found = found || each == format
	}
	check(found, "%s in %v", format, service.Formats)
	l.passwordKey = l.key("the first password")
	request := saltern.NewRegistrationRequest(l.userid, l.passwordKey, kdf())
	request.SetKeyring(sealed(60))
	request.SetDevice(*saltern.NewDevice("Go"))
	request.SetInvite(os.Getenv("SALTERN_TEST_INVITE"))
	register := l.client.AccountsAPI.Register(l.anybody).RegistrationRequest
	made := done(register(*request).Execute())
	request.SetInviteNil()
	_, response, err := register(*request).Execute()
	refused[saltern.Problem](409, "userid_taken", response, err)
	request.SetKdf(*saltern.NewNewKDF(10_000))
	_, response, err = register(*request).Execute()
	problem := refused[saltern.Problem](422, "out_of_range", response, err)
	same(problem.Limit.(float64), float64(service.Kdf.MinimumIterations), "the limit")
	known := saltern.NewKnownDevice()
	known.SetName("Go")
	known.SetToken(made.DeviceToken)
	login := saltern.NewLoginRequest(l.userid, l.passwordKey)
	login.SetDevice(*known)
	login.SetTotp("123456")
	opened := done(l.logIn(login))
	same(opened.GetKeyring(), request.GetKeyring(), "the keyring")
	check(opened.GetKeyringRevision() >= 1 && !opened.KdfUpgradeRequired, "a revision of the keyring")
	l.device = l.person.device(opened.Session.Token)
	account := done(l.AccountsAPI.GetAccount(l).Execute())
	limits := account.Limits
	check(limits.Bytes > 0 && limits.Items > 0 && limits.ItemBytes > 0 && limits.Sessions > 0 && limits.Shares > 0 &&
		limits.DeletedDays > 0, "the limits of the plan, got %v", limits)
	same(account.Userid, l.userid, "the userid")
	same(account.Usage.Items, 0, "items")
	check(account.RevisionBase > highRevision, "a high base, got %d", account.RevisionBase)
}

func (l *life) items() {
	put := func(id string, content saltern.ItemContent) saltern.ApiPutItemRequest {
		return l.ItemsAPI.PutItem(l, id).ItemContent(content)
	}
	contents := []saltern.ItemContent{content(), content(), content(), content()}
	contents[3].SetCollectionNil()
	headers := []*saltern.ItemHeader{}
	for _, each := range contents {
		l.ids = append(l.ids, uuid())
		header := done(put(l.ids[len(l.ids)-1], each).IfNoneMatch("*").Execute())
		check(header.Revision > highRevision, "a high revision, got %d", header.Revision)
		headers = append(headers, header)
	}
	id, second, stored := l.ids[0], content(), headers[0]
	replaced := done(put(id, second).IfMatch(tag(stored.Revision)).Execute())
	same(replaced.Revision, stored.Revision+4, "the next revision")
	item := done(l.ItemsAPI.GetItem(l, id).Execute())
	same(item.Body, second.Body, "the body")
	same(item.GetTitle(), second.GetTitle(), "the title")
	same(item.GetIterations(), math.MaxInt32, "the iterations")
	_, response, err := put(id, content()).IfMatch(tag(stored.Revision)).Execute()
	problem := refused[saltern.ItemPreconditionProblem](412, "precondition_failed", response, err)
	same(problem.Current.Get().GetBody(), second.Body, "the present body in a 412")

	notes := l.ItemsAPI.ListItems(l).Collection("notes").Fields("meta").Limit(2)
	page := done(notes.Execute())
	all := append(page.Items, done(notes.Page(page.GetNextPage()).Execute()).Items...)
	same(len(all), 3, "items in notes")
	for _, each := range all {
		check(!each.HasBody(), "no body, got %v", each)
	}
	same(done(l.ItemsAPI.ListItems(l).Collection("default").Execute()).Items[0].Id, l.ids[3], "the default item")

	versions := done(l.ItemsAPI.ListVersions(l, id).Limit(10).Execute()).Versions
	same(len(versions), 1, "versions")
	same(versions[0].Revision, stored.Revision, "the revision of the version")
	version := done(l.ItemsAPI.GetVersion(l, id, stored.Revision).Execute())
	same(version.Body, contents[0].Body, "the version")
	l.photo(l.ids[1])
}

func (l *life) photo(id string) {
	photo, err := os.CreateTemp("", "photo")
	check(err == nil, "a file, got %v", err)
	defer os.Remove(photo.Name())
	bytesOfPhoto := random(5_000)
	_, err = photo.Write(bytesOfPhoto)
	check(err == nil, "a file, got %v", err)
	_, err = photo.Seek(0, 0)
	check(err == nil, "a file, got %v", err)
	put := l.ItemsAPI.PutItemBody(l, id).Body(photo).Format(format).Collection("photos").Iterations(1_000)
	done(put.Title(base64.RawURLEncoding.EncodeToString(random(39))).IfMatch("*").Execute())
	back := done(l.ItemsAPI.GetItemBody(l, id).Execute())
	defer os.Remove(back.Name())
	content, err := os.ReadFile(back.Name())
	check(err == nil && bytes.Equal(content, bytesOfPhoto), "the bytes that were sent")
	deletion := done(l.ItemsAPI.DeleteItem(l, id).IfMatch("*").Execute())
	check(deletion.Deleted && deletion.RestorableUntil != nil, "a tombstone that can be restored")
	restored := done(l.ItemsAPI.RestoreItem(l, id).IfMatch(tag(deletion.Revision)).Execute())
	same(restored.GetIterations(), 1_000, "the iterations")
}

func (l *life) batch() {
	changes := done(l.SyncAPI.ListChanges(l).Limit(2).Execute())
	check(changes.More && len(changes.Changes) == 2, "a page of two and more")
	changes = done(l.SyncAPI.ListChanges(l).Since(changes.Cursor).Execute())
	check(!changes.More && len(changes.Changes) == 2, "the other two")
	check(changes.RevisionBase > highRevision, "a high base, got %d", changes.RevisionBase)
	batch := saltern.Batch{}
	for _, id := range l.ids[:2] {
		operation := saltern.NewBatchOperation("delete", id)
		operation.SetIfRevision(done(l.ItemsAPI.GetItem(l, id).Execute()).Revision)
		operation.SetBodyNil()
		batch.Operations = append(batch.Operations, *operation)
	}
	l.ids[1] = uuid()
	content := content()
	put := saltern.NewBatchOperation("put", l.ids[1])
	put.SetIfRevision(0)
	put.SetFormat(content.Format)
	put.SetBody(content.Body)
	put.SetCollection(content.GetCollection())
	put.SetTitle(content.GetTitle())
	put.SetIterations(content.GetIterations())
	batch.Operations = append(batch.Operations, *put)
	before := done(l.ItemsAPI.GetItem(l, l.ids[3]).Execute()).Revision
	results := done(l.SyncAPI.WriteBatch(l).Batch(batch).Execute()).Results
	same(len(results), 3, "results")
	check(results[0].Revision > before, "a revision above %d, got %v", before, results)
	same(results[2].Revision, results[0].Revision+2, "consecutive revisions up to")
	seen := done(l.SyncAPI.ListChanges(l).Since(changes.Cursor).Execute()).Changes
	check(len(seen) == 3 && seen[0].Deleted && seen[1].Deleted && !seen[2].Deleted, "two tombstones and an item, got %v", seen)
	same(seen[2].GetBody(), content.Body, "the body of the batch")
	same(seen[2].Revision, results[2].Revision, "the revision of the batch")
	notes := l.SyncAPI.ListChanges(l).Collection("notes").Fields("meta").Tombstones("all")
	same(len(done(notes.Execute()).Changes), 3, "notes and tombstones")
	stale := saltern.NewBatchOperation("delete", l.ids[3])
	stale.SetIfRevision(highRevision)
	_, response, err := l.SyncAPI.WriteBatch(l).Batch(*saltern.NewBatch([]saltern.BatchOperation{*stale})).Execute()
	problem := refused[saltern.BatchProblem](409, "batch_conflict", response, err)
	conflict := problem.Conflicts[0]
	same(conflict.GetRevision(), before, "the present revision in a conflict")
	l.ids = l.ids[1:]
}

func (l *life) share() {
	end := time.Now().In(time.FixedZone("", 19_800)).Add(24 * time.Hour)
	payload := saltern.NewShareContent(format, sealed(16), 10_000, sealed(60))
	payload.SetExpiresAt(end)
	payload.SetMaxViews(3)
	made := done(l.SharesAPI.CreateShare(l).ShareContent(*payload).Execute())
	opened := done(l.SharesAPI.OpenShare(l.anybody, made.Id).Execute())
	same(opened.Sealed, payload.Sealed, "what was shared")
	same(opened.GetViewsLeft(), 2, "views left")
	check(math.Abs(opened.GetExpiresAt().Sub(end).Seconds()) < 1, "the end %v, got %v", end, opened.ExpiresAt)
	same(done(l.SharesAPI.ListShares(l).Limit(10).Execute()).Shares[0].Id, made.Id, "the share")
	_, err := l.SharesAPI.DeleteShare(l.person.device(made.ManageToken), made.Id).Execute()
	check(err == nil, "a share that is deleted, got %v", err)
	_, response, err := l.SharesAPI.OpenShare(l.anybody, made.Id).Execute()
	refused[saltern.Problem](404, "not_found", response, err)
}

func main() {
	life := &life{person: newPerson()}
	life.register()
	life.items()
	life.batch()
	life.keys()
	life.rotate()
	life.share()
	life.leave()
	fmt.Println("the generated Go client has led an account's life")
}
