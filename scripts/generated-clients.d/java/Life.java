import java.io.File;
import java.nio.file.Files;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.UUID;
import saltern.ApiClient;
import saltern.api.*;
import saltern.model.*;

/** An account's life, led by the Java client that openapi-generator makes of openapi.yaml. */
public final class Life {
    /** A database that was restored several times: its revisions need 53 bits. */
    private static final long HIGH_REVISION = 1L << 52;

    private final Person person = new Person();
    private final List<UUID> ids = new ArrayList<>();
    private ApiClient device;
    private ItemsApi items;
    private SyncApi sync;

    private static ItemContent content() {
        return new ItemContent().format(Person.FORMAT).body(Person.sealed(60)).collection("notes").title(Person.sealed(40))
                .iterations(Integer.MAX_VALUE);
    }

    private static String tag(long revision) {
        return "\"" + revision + "\"";
    }

    private void use(String token) {
        device = Person.client(token);
        items = new ItemsApi(device);
        sync = new SyncApi(device);
    }

    private void register() throws Exception {
        Service service = new ServiceApi(person.anybody).describeService();
        Person.check(service.getFormats().contains(Person.FORMAT), "the format in " + service.getFormats());
        person.passwordKey = person.key("the first password");
        String keyring = Person.sealed(60);
        RegistrationRequest request = new RegistrationRequest().userid(person.userid).passwordKey(person.passwordKey)
                .kdf(new NewKDF().iterations(Person.ITERATIONS)).keyring(keyring).device(new Device().name("Java"))
                .invite(System.getenv("SALTERN_TEST_INVITE"));
        Registration made = new AccountsApi(person.anybody).register(request);
        Person.refused(409, "userid_taken", () -> new AccountsApi(person.anybody).register(request.invite(null)));
        request.getKdf().setIterations(10_000);
        String problem = Person.refused(422, "out_of_range", () -> new AccountsApi(person.anybody).register(request));
        Object limit = person.anybody.getObjectMapper().readValue(problem, Problem.class).getLimit();
        Person.same(((Number) limit).intValue(), service.getKdf().getMinimumIterations(), "the limit");
        Login login = person.logIn(new KnownDevice().name("Java").token(made.getDeviceToken()), "123456");
        Person.same(login.getKeyring(), keyring, "the keyring");
        Person.check(login.getKeyringRevision() >= 1 && !login.getKdfUpgradeRequired(), "a revision of the keyring");
        use(login.getSession().getToken());
        Account account = new AccountsApi(device).getAccount();
        Limits limits = account.getLimits();
        Person.check(limits.getBytes() > 0 && limits.getItems() > 0 && limits.getItemBytes() > 0 && limits.getSessions() > 0
                && limits.getShares() > 0 && limits.getDeletedDays() > 0, "the limits of the plan, got " + limits);
        Person.same(account.getUserid(), person.userid, "the userid");
        Person.same(account.getUsage().getItems(), 0L, "items");
        Person.check(account.getRevisionBase() > HIGH_REVISION, "a high base, got " + account.getRevisionBase());
    }

    private void items() throws Exception {
        ItemContent first = content();
        ItemHeader stored = null;
        for (ItemContent each : List.of(first, content(), content(), content().collection(null))) {
            ids.add(UUID.randomUUID());
            ItemHeader header = items.putItem(ids.get(ids.size() - 1), each, null, "*");
            Person.check(header.getRevision() > HIGH_REVISION, "a high revision, got " + header.getRevision());
            if (stored == null) stored = header;
        }
        UUID id = ids.get(0);
        ItemContent second = content();
        ItemHeader replaced = items.putItem(id, second, tag(stored.getRevision()), null);
        Person.same(replaced.getRevision(), stored.getRevision() + 4, "the next revision");
        Item item = items.getItem(id, null, null);
        Person.same(item.getBody(), second.getBody(), "the body");
        Person.same(item.getTitle(), second.getTitle(), "the title");
        Person.same(item.getIterations(), (long) Integer.MAX_VALUE, "the iterations");
        String old = tag(stored.getRevision());
        String problem = Person.refused(412, "precondition_failed", () -> items.putItem(id, content(), old, null));
        ItemState current = device.getObjectMapper().readValue(problem, ItemPreconditionProblem.class).getCurrent();
        Person.same(current.getBody(), second.getBody(), "the present body in a 412");

        ItemPage page = items.listItems("notes", "meta", 2, null);
        page.getItems().addAll(items.listItems("notes", "meta", 2, page.getNextPage()).getItems());
        Person.same(page.getItems().size(), 3, "items in notes");
        Person.check(page.getItems().stream().allMatch(each -> each.getBody() == null), "no bodies");
        Person.same(items.listItems("default", null, null, null).getItems().get(0).getId(), ids.get(3), "the default item");

        List<ItemVersion> versions = items.listVersions(id, 10, null).getVersions();
        Person.same(versions.size(), 1, "versions");
        Person.same(versions.get(0).getRevision(), stored.getRevision(), "the revision of the version");
        Person.same(items.getVersion(id, stored.getRevision(), null, null).getBody(), first.getBody(), "the version");

        // putItemBody of this generator's library sends the name of the file in the place of its bytes.
        items.putItem(ids.get(1), content().collection("photos").iterations(1_000), "*", null);
        File bytes = items.getItemBody(ids.get(1), null, null);
        byte[] body = Base64.getDecoder().decode(items.getItem(ids.get(1), null, null).getBody());
        Person.check(Arrays.equals(Files.readAllBytes(bytes.toPath()), body), "the bytes of the body");
        bytes.delete();
        Deletion deletion = items.deleteItem(ids.get(1), "*");
        Person.check(deletion.getDeleted() && deletion.getRestorableUntil() != null, "a tombstone that can be restored");
        Person.same(items.restoreItem(ids.get(1), tag(deletion.getRevision())).getIterations(), 1_000L, "iterations");
    }

    private void batch() throws Exception {
        ChangePage changes = sync.listChanges(null, 2, null, null, null);
        Person.check(changes.getMore() && changes.getChanges().size() == 2, "a page of two and more");
        changes = sync.listChanges(changes.getCursor(), 500, null, null, null);
        Person.check(!changes.getMore() && changes.getChanges().size() == 2, "the other two");
        Person.check(changes.getRevisionBase() > HIGH_REVISION, "a high base");
        Batch batch = new Batch();
        for (UUID id : ids.subList(0, 2)) {
            batch.addOperationsItem(new BatchOperation().op(BatchOperation.OpEnum.DELETE).id(id)
                    .ifRevision(items.getItem(id, null, null).getRevision()));
        }
        ids.set(1, UUID.randomUUID());
        ItemContent content = content();
        batch.addOperationsItem(new BatchOperation().op(BatchOperation.OpEnum.PUT).id(ids.get(1)).ifRevision(0L)
                .format(content.getFormat()).body(content.getBody()).collection(content.getCollection())
                .title(content.getTitle()).iterations(content.getIterations()));
        long before = items.getItem(ids.get(3), null, null).getRevision();
        List<BatchReceipt> results = sync.writeBatch(batch).getResults();
        Person.same(results.size(), 3, "results");
        Person.check(results.get(0).getRevision() > before, "a revision above " + before + ", got " + results);
        Person.same(results.get(2).getRevision(), results.get(0).getRevision() + 2, "consecutive revisions up to");
        List<ItemState> seen = sync.listChanges(changes.getCursor(), 500, null, null, null).getChanges();
        Person.same(seen.stream().map(ItemState::getDeleted).toList(), List.of(true, true, false), "the changes");
        Person.same(seen.get(2).getBody(), content.getBody(), "the body of the batch");
        Person.same(seen.get(2).getRevision(), results.get(2).getRevision(), "the revision of the batch");
        Person.same(sync.listChanges(null, null, "notes", "meta", "all").getChanges().size(), 3, "notes and tombstones");
        Batch stale = new Batch().addOperationsItem(
                new BatchOperation().op(BatchOperation.OpEnum.DELETE).id(ids.get(3)).ifRevision(HIGH_REVISION));
        String problem = Person.refused(409, "batch_conflict", () -> sync.writeBatch(stale));
        BatchConflict conflict = device.getObjectMapper().readValue(problem, BatchProblem.class).getConflicts().get(0);
        Person.same(conflict.getRevision(), before, "the present revision in a conflict");
        ids.remove(0);
    }

    private void keys() throws Exception {
        AccountsApi accounts = new AccountsApi(device);
        RecoveryApi recovery = new RecoveryApi(device);
        String code = Person.sealed(32);
        RecoverySetting set = recovery.setRecovery(new RecoverySettings().currentPasswordKey(person.passwordKey)
                .recoveryKey(code).keyring(Person.sealed(60)).accountKeyring(Person.sealed(60))
                .accountKeyringRevision(accounts.getKeyring(null, null).getRevision()));
        Person.check(set.getRecovery().getSet(), "a recovery");
        KeyringRequest next = new KeyringRequest().keyring(Person.sealed(60)).recoveryKeyring(Person.sealed(60))
                .removeRecovery(false).currentPasswordKey(person.passwordKey);
        KeyringRevision revision = accounts.putKeyring(next, tag(set.getKeyringRevision()), null);
        Person.same(revision.getRevision(), set.getKeyringRevision() + 1, "the next keyring");
        Person.same(accounts.listKeptKeyrings().getKeyrings().isEmpty(), false, "kept keyrings that are empty:");
        RecoverySession opened = new RecoveryApi(person.anybody).recover(
                new RecoveryRequest().userid(person.userid).recoveryKey(code).device(new Device().name("Java")));
        Person.same(opened.getKeyring(), next.getRecoveryKeyring(), "the keyring of the recovery");
        String newKey = person.key("the second password");
        CredentialChange change = accounts.changeCredential(new CredentialRequest().currentPasswordKey(person.passwordKey)
                .passwordKey(newKey).kdf(new NewKDF().iterations(Person.ITERATIONS)).keyring(Person.sealed(60))
                .keyringRevision(revision.getRevision()).recoveryKeyring(Person.sealed(60)).removeRecovery(false), null);
        Person.check(change.getRecovery().getSet() && !change.getCurrentSessionEnded(), "a recovery, still");
        person.passwordKey = newKey;
    }

    private void rotate() throws Exception {
        RotationApi rotations = new RotationApi(device);
        Rotation rotation = rotations.openRotation(new Proof().currentPasswordKey(person.passwordKey));
        Person.check(rotation.getItems() == 3 && rotation.getRevision() > HIGH_REVISION, "three items, got " + rotation);
        StagedItems staged = new StagedItems();
        for (ItemState item : items.listItems(null, "meta", null, null).getItems()) {
            staged.addItemsItem(new StagedItem().id(item.getId()).ifRevision(item.getRevision()).format(Person.FORMAT)
                    .body(Person.sealed(60)).title(Person.sealed(40)).iterations(1_000));
        }
        Person.same(rotations.stageItems(rotation.getId(), staged).getStaged(), 3L, "staged items");
        String newKey = person.key("the third password");
        RotationResult result = rotations.commitRotation(rotation.getId(), new RotationCommit()
                .currentPasswordKey(person.passwordKey).passwordKey(newKey).kdf(new NewKDF().iterations(Person.ITERATIONS))
                .keyring(Person.sealed(60)).keyringRevision(new AccountsApi(device).getKeyring(null, null).getRevision())
                .recoveryKeyring(null).removeRecovery(true));
        Person.check(result.getItems() == 3 && !result.getRecovery().getSet(), "a rotation of three, got " + result);
        Person.same(result.getRevision(), rotation.getRevision() + 3, "the revision after the rotation");
        person.passwordKey = newKey;
    }

    private void share() throws Exception {
        OffsetDateTime end = OffsetDateTime.now(ZoneOffset.ofHoursMinutes(5, 30)).plusDays(1);
        ShareContent payload = new ShareContent().format(Person.FORMAT).salt(Person.sealed(16)).iterations(10_000)
                .sealed(Person.sealed(60)).expiresAt(end).maxViews(3);
        CreatedShare made = new SharesApi(device).createShare(payload);
        Share opened = new SharesApi(person.anybody).openShare(made.getId());
        Person.same(opened.getSealed(), payload.getSealed(), "what was shared");
        Person.same(opened.getViewsLeft(), 2L, "views left");
        Person.check(Math.abs(ChronoUnit.SECONDS.between(opened.getExpiresAt(), end)) <= 1, "the end " + end);
        Person.same(new SharesApi(device).listShares(10, null).getShares().get(0).getId(), made.getId(), "the share");
        new SharesApi(Person.client(made.getManageToken())).deleteShare(made.getId());
        Person.refused(404, "not_found", () -> new SharesApi(person.anybody).openShare(made.getId()));
    }

    private void leave() throws Exception {
        AccountsApi accounts = new AccountsApi(device);
        List<String> kinds = accounts.listEvents(100, null).getEvents().stream().map(SecurityEvent::getKind).toList();
        Person.check(kinds.containsAll(List.of("rotation_committed", "recovery_set")), "the security log, got " + kinds);
        String userid = "java-" + UUID.randomUUID() + "@example.org";
        String old = person.userid;
        person.userid = userid;
        String newKey = person.key("the fourth password");
        UseridChange change = accounts.changeUserid(new UseridRequest().currentPasswordKey(person.passwordKey).userid(userid)
                .passwordKey(newKey).kdf(new NewKDF().iterations(Person.ITERATIONS)).keyring(Person.sealed(60))
                .keyringRevision(accounts.getKeyring(null, null).getRevision()).recoveryKeyring(null).removeRecovery(true), null);
        Person.check(change.getUserid().equals(userid) && !userid.equals(old), "the other userid");
        person.passwordKey = newKey;
        Person.same(accounts.getAccount().getUsage().getItems(), 3L, "items at the end");
        accounts.deleteAccount(new AccountDeletion().currentPasswordKey(person.passwordKey), null);
        Person.refused(401, "wrong_credentials", () -> person.logIn(null, null));
    }

    public static void main(String[] arguments) throws Exception {
        Life life = new Life();
        life.register();
        life.items();
        life.batch();
        life.keys();
        life.rotate();
        life.share();
        life.leave();
        System.out.println("the generated Java client has led an account's life");
    }
}
