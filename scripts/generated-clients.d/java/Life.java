import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.SecureRandom;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Callable;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import saltern.ApiClient;
import saltern.ApiException;
import saltern.api.AccountsApi;
import saltern.api.ItemsApi;
import saltern.api.RotationApi;
import saltern.api.SessionsApi;
import saltern.api.SharesApi;
import saltern.api.SyncApi;
import saltern.model.*;

/**
 * The part of an account's life in which integers are long, led by the Java client that openapi-generator makes of openapi.yaml:
 * an Integer that should be a Long does not hold a revision of a database that was restored.
 */
public class Life {
    private static final String URL = System.getenv("SALTERN_TEST_URL");
    private static final String OWNER = System.getenv("SALTERN_TEST_OWNER_DATABASE_URL");
    private static final long HIGH_REVISION = (1L << 53) - 1_000_000;
    private static final String FORMAT = "aes-256-gcm";
    private static final SecureRandom RANDOM = new SecureRandom();

    private static void check(boolean holds, String expected) {
        if (!holds) throw new IllegalStateException("expected " + expected);
    }

    private static String sealed() {
        byte[] bytes = new byte[60];
        RANDOM.nextBytes(bytes);
        return Base64.getEncoder().encodeToString(bytes);
    }

    private static ItemContent content() {
        return new ItemContent().format(FORMAT).body(sealed()).collection("notes");
    }

    /** Trusts the server's certificate alone. */
    private static SSLContext tls() throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (var file = Files.newInputStream(Path.of(System.getenv("SALTERN_TEST_CERTIFICATE")))) {
            store.setCertificateEntry("server", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    private static ApiClient client(String token) throws Exception {
        ApiClient client = new ApiClient();
        client.updateBaseUri(URL);
        client.setHttpClientBuilder(ApiClient.createDefaultHttpClientBuilder().sslContext(tls()));
        if (token != null) client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + token));
        return client;
    }

    private static String key(ApiClient anybody, String userid, String password) throws Exception {
        KDFParameters kdf = new AccountsApi(anybody).getKDFParameters(new KDFRequest().userid(userid));
        var spec = new PBEKeySpec(password.toCharArray(), kdf.getSalt().getBytes("UTF-8"), kdf.getIterations(), 256);
        return Base64.getEncoder()
                .encodeToString(SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256").generateSecret(spec).getEncoded());
    }

    private static void raiseRevisions(String userid) throws Exception {
        String change = "UPDATE saltern.accounts SET revision = " + HIGH_REVISION + " WHERE userid = '" + userid + "'";
        Process psql = new ProcessBuilder("psql", "-X", "-q", "-A", "-t", "-c", change, OWNER).inheritIO().start();
        check(psql.waitFor() == 0, "the revision to be raised");
    }

    private static void refused(int status, Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (ApiException error) {
            check(error.getCode() == status, status + ", got " + error.getCode() + ": " + error.getResponseBody());
            return;
        }
        throw new IllegalStateException("expected " + status + ", and it succeeded");
    }

    /** The revision of an item or of a tombstone in a listing. */
    private static long revision(ItemState state) {
        Object actual = state.getActualInstance();
        return actual instanceof Item item ? item.getRevision() : ((ItemHeader) actual).getRevision();
    }

    private static List<UUID> items(ItemsApi items, SyncApi sync) throws Exception {
        List<UUID> ids = new ArrayList<>();
        for (int count = 0; count < 4; count++) {
            UUID id = UUID.randomUUID();
            ItemHeader stored = items.putItem(id, content(), null, "*");
            check(stored.getRevision() > HIGH_REVISION, "a high revision, got " + stored.getRevision());
            ids.add(id);
        }
        ItemPage page = items.listItems("notes", null, null, null);
        check(page.getItems().size() == 4, "four items");
        for (ItemState state : page.getItems()) {
            check(state.getActualInstance() instanceof Item, "whole items");
            check(revision(state) > HIGH_REVISION, "a high revision in a list");
        }
        for (ItemState state : items.listItems("notes", "meta", null, null).getItems()) {
            check(state.getActualInstance() instanceof ItemHeader, "headers");
        }
        Item item = items.getItem(ids.get(0), null, null);
        String stale = "\"" + (item.getRevision() - 1) + "\"";
        refused(412, () -> items.putItem(ids.get(0), content(), stale, null));
        check(items.putItem(ids.get(0), content(), "\"" + item.getRevision() + "\"", null).getRevision() > HIGH_REVISION,
                "a change");
        ChangePage changes = sync.listChanges(null, 500, null, null, null);
        check(changes.getChanges().size() == 4 && !changes.getMore(), "four changes");
        return ids;
    }

    /** Deletes in a batch, which has to be written without the members of a put. */
    private static void deleteInBatch(List<UUID> ids, ItemsApi items, SyncApi sync) throws Exception {
        String cursor = sync.listChanges(null, 500, null, null, null).getCursor();
        Batch batch = new Batch();
        for (UUID id : ids.subList(0, 2)) {
            batch.addOperationsItem(new BatchOperation().op(BatchOperation.OpEnum.DELETE).id(id)
                    .ifRevision(items.getItem(id, null, null).getRevision()));
        }
        batch.addOperationsItem(new BatchOperation().op(BatchOperation.OpEnum.PUT).id(UUID.randomUUID()).ifRevision(0L)
                .format(FORMAT).body(sealed()).collection("notes"));
        BatchResult result = sync.writeBatch(batch);
        check(result.getResults().stream().allMatch(one -> one.getRevision() > HIGH_REVISION), "high revisions of a batch");
        List<ItemState> changes = sync.listChanges(cursor, 500, null, null, null).getChanges();
        check(changes.size() == 3, "three changes, got " + changes.size());
        long tombstones = changes.stream().map(ItemState::getActualInstance)
                .filter(one -> one instanceof ItemHeader header && header.getDeleted()).count();
        check(tombstones == 2, "two tombstones, got " + tombstones);
        Batch stale = new Batch().addOperationsItem(
                new BatchOperation().op(BatchOperation.OpEnum.DELETE).id(ids.get(2)).ifRevision(HIGH_REVISION));
        refused(409, () -> sync.writeBatch(stale));
    }

    private static void keys(AccountsApi accounts, RotationApi rotations, String passwordKey) throws Exception {
        Keyring keyring = accounts.getKeyring(null, null);
        KeyringRevision next = accounts.putKeyring(new KeyringRequest().keyring(sealed()),
                "\"" + keyring.getRevision() + "\"", null);
        check(next.getRevision() > keyring.getRevision(), "a later keyring");
        Rotation rotation = rotations.openRotation(new Proof().currentPasswordKey(passwordKey));
        check(rotation.getItems() == 3 && rotation.getRevision() > HIGH_REVISION, "a rotation of three items");
        rotations.discardRotation(rotation.getId());
    }

    public static void main(String[] arguments) throws Exception {
        ApiClient anybody = client(null);
        String userid = "generated-" + UUID.randomUUID() + "@example.org";
        String passwordKey = key(anybody, userid, "the password");
        Registration made = new AccountsApi(anybody).register(new RegistrationRequest().userid(userid)
                .passwordKey(passwordKey).kdf(new NewKDF().iterations(600_000)).keyring(sealed())
                .device(new Device().name("Java")));
        raiseRevisions(userid);
        Login login = new SessionsApi(anybody).logIn(new LoginRequest().userid(userid).passwordKey(passwordKey));
        check(login.getKeyring() != null && login.getKeyringRevision() >= 1, "a keyring with the log-in");
        ApiClient client = client(made.getSession().getToken());
        AccountsApi accounts = new AccountsApi(client);
        Account account = accounts.getAccount();
        check(account.getLimits().getBytes() > 0 && account.getUsage().getItems() == 0, "limits and usage");
        ItemsApi items = new ItemsApi(client);
        SyncApi sync = new SyncApi(client);
        deleteInBatch(items(items, sync), items, sync);
        keys(accounts, new RotationApi(client), passwordKey);
        ShareContent payload = new ShareContent().format(FORMAT).salt(sealed().substring(0, 24)).iterations(10_000)
                .sealed(sealed()).maxViews(3);
        payload.setSalt(Base64.getEncoder().encodeToString(new byte[16]));
        NewShare share = new SharesApi(client).createShare(payload);
        check(share.getViews() == 0, "a share");
        accounts.deleteAccount(new Proof().currentPasswordKey(passwordKey));
        refused(401, () -> new SessionsApi(anybody)
                .logIn(new LoginRequest().userid(userid).passwordKey(passwordKey)));
        System.out.println("the generated Java client has led an account's life");
    }
}
