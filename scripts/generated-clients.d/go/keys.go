package main

import saltern "example.org/saltern/client"

func (l *life) proof() saltern.Proof { return *saltern.NewProof(l.passwordKey) }

func (l *life) keyringRevision() int64 { return done(l.AccountsAPI.GetKeyring(l).Execute()).Revision }

func (l *life) keys() {
	code := sealed(32)
	settings := saltern.NewRecoverySettings(l.passwordKey, code)
	settings.SetKeyring(sealed(60))
	settings.SetAccountKeyring(sealed(60))
	settings.SetAccountKeyringRevision(l.keyringRevision())
	set := done(l.RecoveryAPI.SetRecovery(l).RecoverySettings(*settings).Execute())
	check(set.Recovery.Set, "a recovery")
	next := saltern.NewKeyringRequest(sealed(60))
	next.SetRecoveryKeyring(sealed(60))
	next.SetRemoveRecovery(false)
	next.SetCurrentPasswordKey(l.passwordKey)
	replaced := done(l.AccountsAPI.PutKeyring(l).KeyringRequest(*next).IfMatch(tag(set.GetKeyringRevision())).Execute())
	same(replaced.Revision, set.GetKeyringRevision()+1, "the next keyring")
	check(len(done(l.AccountsAPI.ListKeptKeyrings(l).Execute()).Keyrings) > 0, "kept keyrings")
	request := saltern.NewRecoveryRequest(l.userid, code)
	request.SetDevice(*saltern.NewDevice("Go"))
	opened := done(l.RecoveryAPI.Recover(l.anybody).RecoveryRequest(*request).Execute())
	same(opened.GetKeyring(), next.GetRecoveryKeyring(), "the keyring of the recovery")
	newKey := l.key("the second password")
	credential := saltern.NewCredentialRequest(newKey, kdf())
	credential.SetCurrentPasswordKey(l.passwordKey)
	credential.SetKeyring(sealed(60))
	credential.SetKeyringRevision(replaced.Revision)
	credential.SetRecoveryKeyring(sealed(60))
	credential.SetRemoveRecovery(false)
	change := done(l.AccountsAPI.ChangeCredential(l).CredentialRequest(*credential).Execute())
	check(change.Recovery.Set && !change.CurrentSessionEnded, "a recovery, still")
	l.passwordKey = newKey
}

func (l *life) rotate() {
	rotation := done(l.RotationAPI.OpenRotation(l).Proof(l.proof()).Execute())
	check(rotation.Items == 3 && rotation.Revision > highRevision, "three items, got %v", rotation)
	staged := saltern.StagedItems{}
	for _, item := range done(l.ItemsAPI.ListItems(l).Fields("meta").Execute()).Items {
		stagedItem := saltern.NewStagedItem(item.Id, item.Revision, format, sealed(60))
		stagedItem.SetTitle(sealed(40))
		stagedItem.SetIterations(1_000)
		staged.Items = append(staged.Items, *stagedItem)
	}
	same(done(l.RotationAPI.StageItems(l, rotation.Id).StagedItems(staged).Execute()).Staged, 3, "staged items")
	newKey := l.key("the third password")
	commit := saltern.NewRotationCommit(l.passwordKey, newKey, kdf())
	commit.SetKeyring(sealed(60))
	commit.SetKeyringRevision(l.keyringRevision())
	commit.SetRecoveryKeyringNil()
	commit.SetRemoveRecovery(true)
	result := done(l.RotationAPI.CommitRotation(l, rotation.Id).RotationCommit(*commit).Execute())
	check(result.Items == 3 && !result.Recovery.Set, "a rotation of three, got %v", result)
	same(result.Revision, rotation.Revision+3, "the revision after the rotation")
	l.passwordKey = newKey
}

func (l *life) leave() {
	kinds := map[string]bool{}
	for _, event := range done(l.AccountsAPI.ListEvents(l).Limit(100).Execute()).Events {
		kinds[event.Kind] = true
	}
	check(kinds["rotation_committed"] && kinds["recovery_set"], "the security log, got %v", kinds)
	l.userid = "go-" + uuid() + "@example.org"
	newKey := l.key("the fourth password")
	request := saltern.NewUseridRequest(l.userid, newKey, kdf())
	request.SetCurrentPasswordKey(l.passwordKey)
	request.SetKeyring(sealed(60))
	request.SetKeyringRevision(l.keyringRevision())
	request.SetRecoveryKeyringNil()
	request.SetRemoveRecovery(true)
	same(done(l.AccountsAPI.ChangeUserid(l).UseridRequest(*request).Execute()).Userid, l.userid, "the userid")
	l.passwordKey = newKey
	same(done(l.AccountsAPI.GetAccount(l).Execute()).Usage.Items, 3, "items at the end")
	proof := saltern.NewAccountDeletion()
	proof.SetCurrentPasswordKey(l.passwordKey)
	_, err := l.AccountsAPI.DeleteAccount(l).AccountDeletion(*proof).Execute()
	check(err == nil, "an account that is deleted, got %v", err)
	_, response, err := l.logIn(saltern.NewLoginRequest(l.userid, l.passwordKey))
	refused[saltern.Problem](401, "wrong_credentials", response, err)
}
