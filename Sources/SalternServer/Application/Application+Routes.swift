internal import HTTPCore

extension Application {
    /// Bodies without authentication, and others with few members.
    private static let small = BodyRule.json(limit: 8_192)
    /// The keyring and the recovery keyring.
    private static let keyrings = BodyRule.json(limit: Keyring.requestLimitWithRecovery)

    /// Returns all routes of the service.
    static func routes(_ parts: Dependencies, _ build: RouteBuilder) -> [Route<RouteMetadata>] {
        let share = BodyRule.json(limit: parts.configuration.items.requestLimit)
        let sharing: GuestRule =
            parts.configuration.shares.acceptsAnonymous
            ? .strangers(bodyLimit: SharePolicy.anonymousRequestLimit) : .nobody
        return [
            build.open(.get, "/v1/service", rate: nil, ShowService(parts.configuration)),
            build.open(.get, "/v1/health/live", rate: nil, ShowLiveness()),
            build.open(
                .get, "/v1/health/ready", rate: nil,
                ShowReadiness(database: parts.database, readiness: parts.nodeState.readiness)),

            build.open(.post, "/v1/kdf", rate: .lookup, body: small, ShowKDFParameters(parts)),

            build.open(
                .post, "/v1/accounts", rate: .registration, body: .json(limit: Keyring.requestLimit),
                RegisterAccount(parts)),
            build.account(.get, "/v1/account", ShowAccount()),
            build.account(.delete, "/v1/account", body: small, deadline: DeleteAccount.deadline, DeleteAccount(parts)),
            build.account(
                .put, "/v1/account/credential", body: keyrings, admitsRestricted: true, ChangeCredential(parts)),
            build.account(.put, "/v1/account/userid", rate: .registration, body: keyrings, ChangeUserid(parts)),
            build.account(.get, "/v1/account/keyring", ShowKeyring()),
            build.account(.put, "/v1/account/keyring", body: keyrings, PutKeyring()),
            build.account(.get, "/v1/account/keyring/kept", ListKeptKeyrings()),
            build.account(.put, "/v1/account/receipt", body: .json(limit: Receipt.requestLimit), PutReceipt()),
            build.account(.post, "/v1/account/export", body: small, ExportAccount(parts)),

            build.account(.post, "/v1/account/totp", body: small, BeginSecondFactor(parts)),
            build.account(.post, "/v1/account/totp/confirm", body: small, FinishSecondFactor(parts)),
            build.account(.post, "/v1/account/totp/recovery-codes", body: small, RenewRecoveryCodes(parts)),
            build.account(.delete, "/v1/account/totp", body: small, EndSecondFactor()),

            build.account(.post, "/v1/account/passkeys", body: small, BeginPasskey(parts)),
            build.account(
                .post, "/v1/account/passkeys/confirm", body: .json(limit: FinishPasskey.requestLimit),
                FinishPasskey(parts)),
            build.account(.post, "/v1/account/passkeys/options", body: small, BeginPasskeyAssertion(parts)),
            build.account(.get, "/v1/account/passkeys", ListPasskeys()),
            build.account(.patch, "/v1/account/passkeys/{id}", body: small, RenamePasskey()),
            build.account(.delete, "/v1/account/passkeys/{id}", body: small, RemovePasskey()),
            build.account(.put, "/v1/account/passkeys/{id}/box", body: small, PutPasskeyBox()),

            build.account(.get, "/v1/account/events", query: ["limit", "page"], ListEvents()),

            build.account(.put, "/v1/account/recovery", body: keyrings, SetRecovery()),
            build.account(.delete, "/v1/account/recovery", body: small, RemoveRecovery()),
            build.open(.post, "/v1/recoveries", rate: .login, body: small, UseRecovery(parts)),

            build.account(
                .post, "/v1/rotations", body: small, deadline: Rotation.discardDeadline, OpenRotation()),
            build.account(
                .put, "/v1/rotations/{id}/items",
                body: .json(limit: Rotation.requestLimit, values: Rotation.valueLimit),
                StageItems(parts.configuration.items)),
            build.account(
                .post, "/v1/rotations/{id}/commit", body: keyrings, deadline: Rotation.commitDeadline,
                changesItems: true, CommitRotation(parts)),
            build.account(
                .delete, "/v1/rotations/{id}", deadline: Rotation.discardDeadline, DiscardRotation()),

            build.open(.post, "/v1/sessions", rate: .login, body: small, LogIn(parts)),
            build.open(.post, "/v1/passkeys/options", rate: .login, BeginPasskeyLogIn(parts)),
            build.open(.post, "/v1/passkeys/sessions", rate: .login, body: small, LogInWithPasskey(parts)),
            build.account(.get, "/v1/sessions", ListSessions()),
            build.account(.delete, "/v1/sessions", EndOtherSessions(parts)),
            build.account(.delete, "/v1/sessions/current", EndCurrentSession()),
            build.account(.delete, "/v1/sessions/{id}", EndSession()),

            build.account(.get, "/v1/changes/stream", StreamChanges(parts.revisions)),

            build.account(.post, "/v1/tokens", rate: .token, body: small, CreateToken(parts)),
            build.open(.post, "/v1/tokens/inspect", rate: .service, body: small, InspectToken(parts)),
            build.open(.get, "/.well-known/jwks.json", rate: nil, ShowKeySet(parts)),
            build.open(.get, "/.well-known/oauth-authorization-server", rate: nil, ShowIssuer(parts)),

            build.account(.post, "/v1/shares", body: share, guests: sharing, CreateShare(parts)),
            build.account(.get, "/v1/shares", query: ["limit", "page"], ListShares(parts)),
            build.open(.get, "/v1/shares/{id}", rate: .share, OpenShare(parts)),
            build.open(.head, "/v1/shares/{id}", rate: .share, InspectShare(parts)),
            build.account(.put, "/v1/shares/{id}", body: share, guests: .managersOfShares, ReplaceShare(parts)),
            build.account(.delete, "/v1/shares/{id}", guests: .managersOfShares, DeleteShare(parts)),
            build.open(
                .post, "/v1/service-events/lease", rate: .service, body: small, deadline: LeaseEvents.deadline,
                LeaseEvents(parts)),
            build.open(.post, "/v1/service-events/ack", rate: .service, body: small, ConfirmEvents(parts)),

            build.account(.post, "/v1/vaults", body: small, CreateVault()),
            build.account(.get, "/v1/vaults", ListVaults(parts)),
            build.account(.get, "/v1/vaults/{vault}", ShowVault(parts)),
            build.account(.delete, "/v1/vaults/{vault}", deadline: DeleteVault.deadline, DeleteVault()),
            build.account(.get, "/v1/vaults/{vault}/log", query: ["after"], ShowLog()),
            build.account(.post, "/v1/vaults/{vault}/log", body: SharedVault.entryRule, AppendEntry()),
            build.account(.put, "/v1/vaults/{vault}/log", body: SharedVault.entriesRule, PutBackEntries()),
            build.account(.get, "/v1/vaults/{vault}/seals/{number}", ShowSealList()),
            build.account(
                .put, "/v1/vaults/{vault}/seals/{number}", body: .json(limit: SharedVault.listLimit), StoreSealList()),
            build.account(.put, "/v1/vaults/{vault}/boxes", body: SharedVault.boxesRule, StoreBoxes()),
            build.account(.delete, "/v1/vaults/{vault}/boxes/mine", RemoveOwnBox()),
            build.account(.put, "/v1/vaults/{vault}/seen", body: small, NoteSeen()),
            build.account(.post, "/v1/vaults/{vault}/claim", body: small, ClaimMember()),
            build.account(.post, "/v1/vaults/{vault}/recovered", body: small, ReportRecovery()),
            build.account(.get, "/v1/vaults/{vault}/invitations", ListInvitations(parts)),
            build.account(.post, "/v1/vaults/{vault}/invitations", body: small, CreateInvitation()),
            build.account(.post, "/v1/vaults/{vault}/owner", body: small, AcceptOwnership()),
            build.open(.get, "/v1/invitations/{id}", rate: .share, OpenInvitation(parts)),
            build.account(.post, "/v1/invitations/{id}/acceptance", body: small, AcceptInvitation(parts)),
        ] + items(parts.configuration.items, build) + pages(parts.configuration, build)
    }

    /// Returns the routes of items, each for the caller's account and for a vault.
    private static func items(_ policy: ItemPolicy, _ build: RouteBuilder) -> [Route<RouteMetadata>] {
        let item = BodyRule.jsonOrBytes(json: policy.requestLimit, bytes: ItemPolicy.byteLimit)
        return [
            build.items(.get, "/items", query: ["collection", "fields", "limit", "page"], ListItems()),
            build.items(.get, "/items/{id}", ShowItem()),
            build.items(
                .put, "/items/{id}", body: item, bytesQuery: ItemContent.parameters,
                changesItems: true, PutItem(policy)),
            build.items(.delete, "/items/{id}", changesItems: true, DeleteItem()),
            build.items(.get, "/items/{id}/body", ShowItem(isAlwaysBytes: true)),
            build.items(
                .put, "/items/{id}/body", body: .bytes(limit: ItemPolicy.byteLimit),
                bytesQuery: ItemContent.parameters, changesItems: true, PutItem(policy)),
            build.items(.post, "/items/{id}/restore", changesItems: true, RestoreItem()),
            build.items(.get, "/items/{id}/versions", query: ["limit", "page"], ListVersions()),
            build.items(.get, "/items/{id}/versions/{revision}", ShowVersion()),
            build.items(
                .post, "/items/batch", body: .json(limit: WriteBatch.requestLimit, values: WriteBatch.valueLimit),
                changesItems: true, WriteBatch(policy)),

            build.items(
                .get, "/changes", query: ["since", "limit", "tombstones", "collection", "fields"],
                ListChanges()),
        ].flatMap(\.self)
    }

    /// Returns the routes for browsers and platforms of apps. Their replies are constant, so they have no rate limit.
    private static func pages(
        _ configuration: ServiceConfiguration, _ build: RouteBuilder
    ) -> [Route<RouteMetadata>] {
        let page = BrowserPage(service: configuration.name, banner: configuration.appLinks.appStoreID)
        return [
            build.open(.get, "/s/{id}", rate: nil, ignoresQuery: true, ShowSharePage(page)),
            build.open(.get, "/s/{id}/", rate: nil, ignoresQuery: true, ShowSharePage(page)),
            build.open(.get, "/s/{id}/{passphrase}", rate: nil, ignoresQuery: true, ShowSharePage(page)),
            build.open(.get, "/s/{id}/{passphrase}/", rate: nil, ignoresQuery: true, ShowSharePage(page)),
            build.open(.get, "/j/{id}", rate: nil, ignoresQuery: true, ShowSharePage(invitationsOf: page)),
            build.open(.get, "/j/{id}/", rate: nil, ignoresQuery: true, ShowSharePage(invitationsOf: page)),
            build.open(.get, "/assets/{name}", rate: nil, ShowSharePageAsset(page)),
            build.open(
                .get, "/.well-known/apple-app-site-association", rate: nil,
                ShowAppleAppSiteAssociation(configuration.appLinks, acceptsPasskeys: configuration.passkeys != nil)),
            build.open(
                .get, "/.well-known/assetlinks.json", rate: nil,
                ShowAssetLinks(configuration.appLinks, acceptsPasskeys: configuration.passkeys != nil)),
        ]
    }
}
