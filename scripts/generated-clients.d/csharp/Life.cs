using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Newtonsoft.Json;
using Saltern.Api;
using Saltern.Client;
using Saltern.Model;

/// <summary>An account's life, led by the C# client that openapi-generator makes of openapi.yaml.</summary>
public sealed class Life
{
    // A database that was restored several times: its revisions need 53 bits.
    private const long HighRevision = 1L << 52;
    private const string Format = "aes-256-gcm";

    private readonly string userid = "csharp-" + Guid.NewGuid() + "@example.org";
    private readonly List<Guid> ids = new List<Guid>();
    private readonly AccountsApi openAccounts = new AccountsApi(Http, Configure(null), Handler);
    private readonly SessionsApi openSessions = new SessionsApi(Http, Configure(null), Handler);
    private string passwordKey;
    private Configuration device;
    private ItemsApi items;
    private SyncApi sync;

    // Trusts the server's certificate alone.
    private static readonly X509Certificate2 Certificate = new X509Certificate2(Setting("SALTERN_TEST_CERTIFICATE"));
    private static readonly HttpClientHandler Handler = new HttpClientHandler
    {
        ServerCertificateCustomValidationCallback = (request, certificate, chain, errors) =>
            certificate.GetRawCertData().SequenceEqual(Certificate.GetRawCertData())
    };
    private static readonly HttpClient Http = new HttpClient(Handler);

    private static string Setting(string name) => Environment.GetEnvironmentVariable(name);

    private static Configuration Configure(string token) =>
        new Configuration { BasePath = Setting("SALTERN_TEST_URL"), AccessToken = token };

    private static void Check(bool holds, string expected)
    {
        if (!holds) throw new Exception("expected " + expected);
    }

    private static void Same<T>(T actual, T expected, string name) => Check(Equals(actual, expected), $"{name} {expected}, got {actual}");

    // Returns the problem with which the server refuses the call.
    private static T Refused<T>(int status, string code, Action call) where T : class
    {
        try
        {
            call();
        }
        catch (ApiException error)
        {
            var text = error.ErrorContent.ToString();
            Check(error.ErrorCode == status && text.Contains("\"code\":\"" + code + "\""), $"{status} {code}, got {error.ErrorCode}: {text}");
            return JsonConvert.DeserializeObject<T>(text);
        }
        throw new Exception($"expected {status} {code}, and it succeeded");
    }

    private static string Sealed(int size)
    {
        var bytes = new byte[size];
        using (var random = RandomNumberGenerator.Create()) random.GetBytes(bytes);
        return Convert.ToBase64String(bytes);
    }

    private static ItemContent Content(string collection = "notes") => new ItemContent(
        format: Format, body: Sealed(60), collection: collection, title: Sealed(40), iterations: int.MaxValue);

    private static string Tag(long revision) => "\"" + revision + "\"";

    // As docs/protocol.md defines it, with the parameters that the server names.
    private string Key(string password)
    {
        var kdf = openAccounts.GetKDFParameters(new KDFRequest(userid));
        Same(kdf.Salt, kdf.SaltPrefix + userid, "the salt");
        var salt = System.Text.Encoding.UTF8.GetBytes(kdf.Salt);
        using (var derivation = new Rfc2898DeriveBytes(password, salt, kdf.Iterations, HashAlgorithmName.SHA256))
            return Convert.ToBase64String(derivation.GetBytes(32));
    }

    private void Register()
    {
        var service = new ServiceApi(Http, Configure(null), Handler).DescribeService();
        Check(service.Formats.Contains(Format), "the format");
        passwordKey = Key("the first password");
        var keyring = Sealed(60);
        var request = new RegistrationRequest(
            userid, passwordKey, new NewKDF(600000), keyring, new Device("C#"), Setting("SALTERN_TEST_INVITE"));
        var made = openAccounts.Register(request);
        request.Invite = null;
        Refused<Problem>(409, "userid_taken", () => openAccounts.Register(request));
        request.Kdf.Iterations = 10000;
        var problem = Refused<Problem>(422, "out_of_range", () => openAccounts.Register(request));
        Same(Convert.ToInt32(problem.Limit), service.Kdf.MinimumIterations, "the limit");
        var login = openSessions.LogIn(new LoginRequest(userid, passwordKey, new KnownDevice("C#", made.DeviceToken)));
        Same(login.Keyring, keyring, "the keyring");
        device = Configure(login.Session.Token);
        items = new ItemsApi(Http, device, Handler);
        sync = new SyncApi(Http, device, Handler);
        var account = new AccountsApi(Http, device, Handler).GetAccount();
        Check(account.RevisionBase > HighRevision, "a high base, got " + account.RevisionBase);
        Check(account.Limits.Bytes > 0 && account.Usage.Items == 0, "the limits of the plan, and no items");
    }

    private void KeepItems()
    {
        long first = 0;
        foreach (var each in new[] { Content(), Content(), Content(), Content(null) })
        {
            ids.Add(Guid.NewGuid());
            var header = items.PutItem(ids.Last(), each, ifNoneMatch: "*");
            Check(header.Revision > HighRevision, "a high revision, got " + header.Revision);
            if (first == 0) first = header.Revision;
        }
        var second = Content();
        Same(items.PutItem(ids[0], second, Tag(first)).Revision, first + 4, "the next revision");
        var item = items.GetItem(ids[0]);
        Same(item.Body, second.Body, "the body");
        Same(item.Iterations, int.MaxValue, "the iterations");
        var problem = Refused<ItemPreconditionProblem>(412, "precondition_failed", () => items.PutItem(ids[0], Content(), Tag(first)));
        Same(problem.Current.Body, second.Body, "the present body in a 412");
        Same(items.ListVersions(ids[0], 10).Versions.Single().Revision, first, "the revision of the version");
        var page = items.ListItems("notes", "meta", 2);
        Same(page.Items.Count + items.ListItems("notes", "meta", 2, page.NextPage).Items.Count, 3, "items in notes");
        Same(items.ListItems("default").Items.Single().Id, ids[3], "the default item");
        var deletion = items.DeleteItem(ids[1], "*");
        Check(deletion.Deleted && deletion.Revision > HighRevision, "a tombstone");
        Same(items.RestoreItem(ids[1], Tag(deletion.Revision)).Revision, deletion.Revision + 1, "the restored revision");
    }

    private void WriteBatches()
    {
        var changes = sync.ListChanges(limit: 2);
        Check(changes.More && changes.RevisionBase > HighRevision, "a page of more, with a high base");
        changes = sync.ListChanges(changes.Cursor);
        var operations = ids.Take(2).Select(id => new BatchOperation(
            op: BatchOperation.OpEnum.Delete, id: id, ifRevision: items.GetItem(id).Revision)).ToList();
        var content = Content();
        ids[1] = Guid.NewGuid();
        operations.Add(new BatchOperation(
            op: BatchOperation.OpEnum.Put, id: ids[1], ifRevision: 0, format: Format, body: content.Body, collection: "notes"));
        var results = sync.WriteBatch(new Batch(operations)).Results;
        Same(results[2].Revision, results[0].Revision + 2, "consecutive revisions up to");
        var seen = sync.ListChanges(changes.Cursor).Changes;
        Check(seen.Select(change => change.Deleted).SequenceEqual(new[] { true, true, false }), "the changes");
        Check(seen.Select(change => change.Revision).SequenceEqual(results.Select(result => result.Revision)), "their revisions");
        Same(seen[2].Body, content.Body, "the body of the batch");
        var stale = new BatchOperation(op: BatchOperation.OpEnum.Delete, id: ids[3], ifRevision: HighRevision);
        var problem = Refused<BatchProblem>(409, "batch_conflict", () => sync.WriteBatch(new Batch(new List<BatchOperation> { stale })));
        Same(problem.Conflicts.Single().Revision, items.GetItem(ids[3]).Revision, "the present revision in a conflict");
    }

    private void Share()
    {
        var end = DateTime.UtcNow.AddDays(1);
        var shares = new SharesApi(Http, device, Handler);
        var payload = new ShareContent(Format, Sealed(16), 10000, Sealed(60), end, 3);
        var made = shares.CreateShare(payload);
        var opened = new SharesApi(Http, Configure(null), Handler).OpenShare(made.Id);
        Same(opened.Sealed, payload.Sealed, "what was shared");
        Check(Math.Abs((opened.ExpiresAt.ToUniversalTime() - end).TotalSeconds) <= 1, "the end " + end);
        new SharesApi(Http, Configure(made.ManageToken), Handler).DeleteShare(made.Id);
        Refused<Problem>(404, "not_found", () => shares.OpenShare(made.Id));
    }

    private void Leave()
    {
        var accounts = new AccountsApi(Http, device, Handler);
        Same(accounts.GetAccount().Usage.Items, 3, "items at the end");
        accounts.DeleteAccount(new AccountDeletion(passwordKey));
        Refused<Problem>(401, "wrong_credentials", () => openSessions.LogIn(new LoginRequest(userid, passwordKey)));
    }

    public static int Main()
    {
        try
        {
            var life = new Life();
            life.Register();
            life.KeepItems();
            life.WriteBatches();
            life.Share();
            life.Leave();
            Console.WriteLine("the generated C# client has led an account's life");
            return 0;
        }
        catch (Exception error)
        {
            Console.Error.WriteLine(error);
            return 1;
        }
    }
}
