"""An account's life, led by the client that openapi-generator makes of openapi.yaml.

Nothing here builds a request or reads a reply by itself: what the generated client cannot say or does not understand is a
fault of the description.
"""

import base64
import datetime
import hashlib
import os
import time
import uuid

import pyotp
import saltern_api as api
from saltern_api.exceptions import ApiException

URL = os.environ["SALTERN_TEST_URL"]
CERTIFICATE = os.environ["SALTERN_TEST_CERTIFICATE"]
INVITE = os.environ["SALTERN_TEST_INVITE"]
COLLECTIONS = ["default", "notes", "photos"]
# A database that was restored several times: its revisions need 53 bits.
HIGH_REVISION = 2**52


def check(holds, expected):
    if not holds:
        raise SystemExit(f"expected {expected}")


def refused(status, call, problem_type=api.Problem):
    """The problem that the call is answered with, as the generated client understands it."""
    try:
        call()
    except ApiException as error:
        check(error.status == status, f"{status}, got {error.status}: {error.body}")
        check(isinstance(error.data, problem_type), f"a {problem_type.__name__}, got {error.data!r}")
        return error.data
    raise SystemExit(f"expected {status}, and it succeeded")


def text(data):
    return base64.b64encode(data).decode()


def sealed(size=60):
    return text(os.urandom(size))


def content(collection=None):
    return api.ItemContent(format="aes-256-gcm", body=sealed(), collection=collection)


class Device:
    """The generated client with a token of its own."""

    def __init__(self, token=None):
        configuration = api.Configuration(host=URL, access_token=token, ssl_ca_cert=CERTIFICATE)
        client = api.ApiClient(configuration)
        self.service = api.ServiceApi(client)
        self.accounts = api.AccountsApi(client)
        self.sessions = api.SessionsApi(client)
        self.second_factor = api.SecondFactorApi(client)
        self.recovery = api.RecoveryApi(client)
        self.items = api.ItemsApi(client)
        self.sync = api.SyncApi(client)
        self.rotation = api.RotationApi(client)
        self.shares = api.SharesApi(client)


class Person:
    def __init__(self):
        self.anybody = Device()
        self.userid = f"generated-{uuid.uuid4()}@example.org"
        self.password_key = ""

    def key(self, password):
        """As docs/protocol.md defines it, with the parameters that the server names."""
        kdf = self.anybody.accounts.get_kdf_parameters(api.KDFRequest(userid=self.userid))
        check(kdf.algorithm == "PBKDF2-HMAC-SHA256" and kdf.key_length == 32, f"other parameters than {kdf}")
        return text(hashlib.pbkdf2_hmac("sha256", password.encode(), kdf.salt.encode(), kdf.iterations))

    def log_in(self, totp=None):
        request = api.LoginRequest(
            userid=self.userid, passwordKey=self.password_key, totp=totp, device=api.KnownDevice(name="Python")
        )
        return self.anybody.sessions.log_in(request)


def register(person):
    service = person.anybody.service.describe_service()
    check("aes-256-gcm" in service.formats, f"the format in {service.formats}")
    person.password_key = person.key("the first password")
    kdf = api.NewKDF(iterations=service.kdf.iterations)
    request = api.RegistrationRequest(
        userid=person.userid, passwordKey=person.password_key, kdf=kdf, keyring=sealed(), device=api.Device(name="Python"),
        invite=INVITE,
    )
    made = person.anybody.accounts.register(request)
    person.device = Device(made.session.token)
    account = person.device.accounts.get_account()
    limits = account.limits
    check(
        min(limits.items, limits.item_bytes, limits.bytes, limits.sessions, limits.shares, limits.deleted_days) > 0,
        f"the limits of the plan, got {limits}",
    )
    check(account.usage.items == 0 and account.revision_base > HIGH_REVISION, f"a high base, got {account.revision_base}")
    taken = refused(409, lambda: person.anybody.accounts.register(request))
    check(taken.code == "userid_taken", "userid_taken")
    few = api.RegistrationRequest(userid=person.userid, passwordKey=person.password_key, kdf=api.NewKDF(iterations=10_000))
    problem = refused(422, lambda: person.anybody.accounts.register(few))
    check(problem.code == "out_of_range" and problem.limit == service.kdf.minimum_iterations, "the limit")
    upper = api.RegistrationRequest(userid=person.userid.upper(), passwordKey=person.password_key, kdf=kdf)
    problem = refused(422, lambda: person.anybody.accounts.register(upper))
    check(problem.code == "userid_not_canonical" and problem.canonical == person.userid, "the canonical form")


def log_in_with_second_factor(person):
    check(person.log_in().keyring is not None, "a keyring with the log-in")
    proof = api.Proof(currentPasswordKey=person.password_key)
    begun = person.device.second_factor.begin_totp(api.ProofOrAssertion(currentPasswordKey=person.password_key))
    secret = pyotp.TOTP(begun.secret)
    # Half a minute is between now and when either of them counts no more.
    now = int(time.time())
    codes = person.device.second_factor.confirm_totp(api.TOTPConfirmation(totp=secret.at(now))).recovery_codes
    check(refused(401, person.log_in).code == "totp_required", "totp_required")
    check(person.log_in(secret.at(now + 30)).session.token, "a log-in with a code of the authenticator")
    check(person.log_in(codes[0].lower()).session.token, "a log-in with a recovery code")
    person.device.second_factor.end_totp(proof)


def items(person):
    device = person.device
    ids = {}
    for collection in COLLECTIONS:
        ids[collection] = uuid.uuid4()
        stored = device.items.put_item(ids[collection], content(collection), if_none_match="*")
        check(stored.collection == collection and not stored.deleted, "the header of what was stored")
    nameless = device.items.put_item(uuid.uuid4(), content(), if_none_match="*")
    check(nameless.collection == "default", "an item that names no collection in default")
    check(nameless.revision > HIGH_REVISION, f"a revision above 2^52, got {nameless.revision}")
    whole = api.ItemContent(format="aes-256-gcm", body=sealed(), collection="notes", title=sealed(), iterations=2_147_483_647)
    check(device.items.put_item(ids["notes"], whole, if_match="*").collection == "notes", "every member of an item to be taken")
    kept = device.items.put_item(ids["notes"], content(), if_match="*")
    check(kept.collection == "notes", "an item that stays where it is when its collection is not named")

    everything = device.items.list_items()
    found = {item.collection for item in everything.items}
    check(found == set(COLLECTIONS) and len(everything.items) == 4, f"the items of all collections, got {found}")
    notes = device.items.list_items(collection="notes", fields="meta").items
    check([(item.collection, item.body) for item in notes] == [("notes", None)], "the header of the one note")

    note = ids["notes"]
    item = device.items.get_item(note)
    check(item.format == "aes-256-gcm" and item.body, "a whole item")
    versions = device.items.list_versions(note, limit=10).versions
    check(len(versions) == 1 and HIGH_REVISION < versions[0].revision < item.revision, f"one version, got {versions}")
    version = device.items.get_version(note, versions[0].revision)
    check(version.revision == versions[0].revision and version.body != item.body, "the earlier content")
    problem = refused(
        412, lambda: device.items.put_item(note, content("notes"), if_match='"999"'), api.ItemPreconditionProblem
    )
    check(problem.current.body == item.body, "the item as it is in a 412")
    check(refused(428, lambda: device.items.delete_item(note)).code == "precondition_required", "precondition_required")

    photo, bytes_of_photo = ids["photos"], os.urandom(5_000)
    device.items.put_item_body(
        "aes-256-gcm", photo, bytes_of_photo, if_match="*", collection="photos",
        iterations=1_000, title=base64.urlsafe_b64encode(os.urandom(39)).decode(),
    )
    check(device.items.get_item_body(photo) == bytes_of_photo, "the bytes that were sent")

    deletion = device.items.delete_item(note, if_match=f'"{item.revision}"')
    check(deletion.deleted and deletion.restorable_until, "a tombstone that can be restored")
    restored = device.items.restore_item(note, if_match=f'"{deletion.revision}"')
    check(restored.body == item.body and not restored.deleted, "what was deleted")
    return ids


def batch_and_changes(person, ids):
    device = person.device
    page = device.sync.list_changes(limit=2)
    seen = list(page.changes)
    while page.more:
        page = device.sync.list_changes(since=page.cursor, limit=2)
        seen += page.changes
    check(len(seen) == 4, "four items in the feed")
    put = api.BatchOperation(
        op="put", id=ids["default"], format="aes-256-gcm", body=sealed(), collection="default", ifRevision=None,
        title=sealed(), iterations=1_000,
    )
    seen_notes = device.items.get_item(ids["notes"]).revision
    delete = api.BatchOperation(op="delete", id=ids["notes"], ifRevision=seen_notes, body=None)
    batch = api.Batch(operations=[put, delete])
    results = device.sync.write_batch(batch).results
    check([result.id for result in results] == [ids["default"], ids["notes"]], "a result for each operation")
    stale = api.BatchOperation(op="put", id=ids["photos"], ifRevision=1, format="aes-256-gcm", body=sealed())
    problem = refused(409, lambda: device.sync.write_batch(api.Batch(operations=[stale])), api.BatchProblem)
    check(problem.conflicts[0].code == "precondition_failed", "the operation that failed")
    check(problem.conflicts[0].revision > HIGH_REVISION, "the present revision in a conflict")

    changes = device.sync.list_changes(since=page.cursor).changes
    check([change.deleted for change in changes] == [False, True], "an item and a tombstone")
    check([change.body for change in changes] == [put.body, None], "an item and a tombstone without a body")
    check([change.revision for change in changes] == [result.revision for result in results], "the revisions of the batch")
    meta = device.sync.list_changes(collection="photos", fields="meta")
    check([change.collection for change in meta.changes] == ["photos"], "the photos alone")
    foreign = refused(400, lambda: device.sync.list_changes(since=meta.cursor))
    check(foreign.code == "malformed_cursor", "the cursor of a collection refused for all of them")


def change_keys(person):
    """A recovery code, and data keys that change."""
    device = person.device
    recovery_key = text(hashlib.pbkdf2_hmac("sha256", b"a printed code", b"salt", 10_000))
    settings = api.RecoverySettings(
        currentPasswordKey=person.password_key, recoveryKey=recovery_key, keyring=sealed(),
        accountKeyringRevision=device.accounts.get_keyring().revision,
    )
    check(device.recovery.set_recovery(settings).recovery.set, "a recovery")
    revision = device.accounts.get_keyring().revision
    request = api.KeyringRequest(keyring=sealed())
    problem = refused(428, lambda: device.accounts.put_keyring(request, if_match=f'"{revision}"'))
    check(problem.code == "recovery_keyring_required", "recovery_keyring_required")
    request.recovery_keyring = sealed()
    check(device.accounts.put_keyring(request, if_match=f'"{revision}"').recovery.set, "a recovery, still")
    conflict = refused(
        412, lambda: device.accounts.put_keyring(api.KeyringRequest(keyring=sealed()), if_match='"1"'),
        api.KeyringPreconditionProblem,
    )
    check(conflict.current.keyring == request.keyring, "the keyring as it is in a 412")

    opened = person.anybody.recovery.recover(api.RecoveryRequest(userid=person.userid, recoveryKey=recovery_key))
    check(opened.keyring == request.recovery_keyring, "the recovery keyring of the last change")
    restricted = Device(opened.session.token)
    person.password_key = person.key("the second password")
    change = restricted.accounts.change_credential(
        api.CredentialRequest(
            passwordKey=person.password_key,
            kdf=api.NewKDF(iterations=opened.kdf.iterations),
            keyring=sealed(),
            keyringRevision=opened.keyring_revision,
            removeRecovery=True,
        )
    )
    check(change.current_session_ended and not change.recovery.set, "no session and no recovery")
    person.device = Device(person.log_in().session.token)


def rotate(person):
    device = person.device
    new_key = person.key("the third password")
    rotation = device.rotation.open_rotation(api.Proof(currentPasswordKey=person.password_key))
    commit = api.RotationCommit(
        currentPasswordKey=person.password_key,
        passwordKey=new_key,
        kdf=api.NewKDF(iterations=600_000),
        keyring=sealed(),
        keyringRevision=device.accounts.get_keyring().revision,
    )
    problem = refused(409, lambda: device.rotation.commit_rotation(rotation.id, commit), api.RotationProblem)
    check(len(problem.missing) == rotation.items == 3, "three items to stage")
    staged = [
        api.StagedItem(
            id=item.id, ifRevision=item.revision, format="aes-256-gcm", body=sealed(), title=sealed(),
            iterations=1_000,
        )
        for item in device.items.list_items(fields="meta").items
    ]
    check(device.rotation.stage_items(rotation.id, api.StagedItems(items=staged)).staged == 3, "three staged items")
    result = device.rotation.commit_rotation(rotation.id, commit)
    check(result.items == 3 and result.revision and result.kdf.iterations, "what the rotation has come to")
    person.password_key = new_key


def share(person):
    # In a zone other than UTC, and with microseconds, as the generated client writes it.
    end = datetime.datetime.now(datetime.timezone(datetime.timedelta(hours=5, minutes=30))) + datetime.timedelta(days=1)
    payload = api.ShareContent(
        format="aes-256-gcm", salt=text(os.urandom(16)), iterations=10_000, sealed=sealed(), maxViews=3, expiresAt=end
    )
    made = person.device.shares.create_share(payload)
    check(made.manage_token.startswith("slm_") and made.views == 0, "a share and its manage token")
    opened = person.anybody.shares.open_share(made.id)
    check(opened.sealed == payload.sealed and opened.views_left == 2, "what was shared")
    check(abs(opened.expires_at - end) < datetime.timedelta(seconds=1), f"the end {end}, got {opened.expires_at}")
    check([shown.id for shown in person.device.shares.list_shares().shares] == [made.id], "the share in the list")
    Device(made.manage_token).shares.delete_share(made.id)
    check(refused(404, lambda: person.anybody.shares.open_share(made.id)).code == "not_found", "not_found")


def leave(person):
    kinds = {event.kind for event in person.device.accounts.list_events().events}
    check({"recovery_removed", "rotation_committed"} <= kinds, f"the security log, got {kinds}")
    account = person.device.accounts.get_account()
    check(account.usage.items == 3 and not account.recovery.set, "the account as it is")
    person.device.accounts.delete_account(api.AccountDeletion(currentPasswordKey=person.password_key))
    check(refused(401, person.log_in).code == "wrong_credentials", "an account that is gone")


def main():
    person = Person()
    register(person)
    log_in_with_second_factor(person)
    ids = items(person)
    batch_and_changes(person, ids)
    change_keys(person)
    rotate(person)
    share(person)
    leave(person)
    print("the generated Python client has led an account's life")


main()
