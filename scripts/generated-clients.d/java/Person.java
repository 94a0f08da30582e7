import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.SecureRandom;
import java.security.cert.CertificateFactory;
import java.util.Base64;
import java.util.HexFormat;
import java.util.UUID;
import java.util.concurrent.Callable;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import saltern.ApiClient;
import saltern.ApiException;
import saltern.api.AccountsApi;
import saltern.api.SessionsApi;
import saltern.model.*;

/** A person with a password, and the checks of a life. */
final class Person {
    static final int ITERATIONS = 600_000;
    static final String FORMAT = "aes-256-gcm";
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final SSLContext TLS = tls();

    final ApiClient anybody = client(null);
    String userid = "java-" + UUID.randomUUID() + "@example.org";
    String passwordKey;

    static void check(boolean holds, String expected) {
        if (!holds) throw new IllegalStateException("expected " + expected);
    }

    static void same(Object actual, Object expected, String name) {
        check(expected.equals(actual), name + " " + expected + ", got " + actual);
    }

    /** The text of the problem with which the server refuses the call. */
    static String refused(int status, String code, Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (ApiException error) {
            check(error.getCode() == status && error.getResponseBody().contains("\"code\":\"" + code + "\""),
                    status + " " + code + ", got " + error.getCode() + ": " + error.getResponseBody());
            return error.getResponseBody();
        }
        throw new IllegalStateException("expected " + status + " " + code + ", and it succeeded");
    }

    static byte[] random(int size) {
        byte[] bytes = new byte[size];
        RANDOM.nextBytes(bytes);
        return bytes;
    }

    static String sealed(int size) {
        return Base64.getEncoder().encodeToString(random(size));
    }

    static ApiClient client(String token) {
        ApiClient client = new ApiClient();
        client.updateBaseUri(System.getenv("SALTERN_TEST_URL"));
        client.setHttpClientBuilder(ApiClient.createDefaultHttpClientBuilder().sslContext(TLS));
        if (token != null) client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + token));
        return client;
    }

    /** Trusts the server's certificate alone. */
    private static SSLContext tls() {
        try (var file = Files.newInputStream(Path.of(System.getenv("SALTERN_TEST_CERTIFICATE")))) {
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            store.setCertificateEntry("server", CertificateFactory.getInstance("X.509").generateCertificate(file));
            var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(store);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, trust.getTrustManagers(), null);
            return context;
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static byte[] pbkdf2(String password, String salt, int iterations) throws Exception {
        var spec = new PBEKeySpec(password.toCharArray(), salt.getBytes("UTF-8"), iterations, 256);
        return SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256").generateSecret(spec).getEncoded();
    }

    /** As docs/protocol.md defines it, with its test vector. */
    String key(String password) throws Exception {
        same(HexFormat.of().formatHex(pbkdf2("S3kr3t!", "com.example.MyGreatSite:robnapier@gmail.com", 10_000)),
                "f68a328661383beb161e7fc403de2d1507ee84d670d5064d508991a240853ded", "the test vector");
        KDFParameters kdf = new AccountsApi(anybody).getKDFParameters(new KDFRequest().userid(userid));
        same(kdf.getKeyLength().getValue(), 32, "a key length of");
        same(kdf.getSalt(), kdf.getSaltPrefix() + userid, "the salt");
        return Base64.getEncoder().encodeToString(pbkdf2(password, kdf.getSalt(), kdf.getIterations()));
    }

    Login logIn(KnownDevice device, String totp) throws Exception {
        return new SessionsApi(anybody).logIn(
                new LoginRequest().userid(userid).passwordKey(passwordKey).device(device).totp(totp));
    }
}
