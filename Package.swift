// swift-tools-version: 6.2
import PackageDescription

/// The compiler's upcoming rules, all on, so that no file needs a dialect of its own.
let settings: [SwiftSetting] = [
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0335-existential-any.md
    .enableUpcomingFeature("ExistentialAny"),
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0409-access-level-on-imports.md
    .enableUpcomingFeature("InternalImportsByDefault"),
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0444-member-import-visibility.md
    .enableUpcomingFeature("MemberImportVisibility"),
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0461-async-function-isolation.md
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0470-isolated-conformances.md
    .enableUpcomingFeature("InferIsolatedConformances"),
]

/// The number of the compiler's threads in the tests' build of scripts/lib/toolchain.sh; nil in others.
let testThreads = Context.environment["SALTERN_TEST_THREADS"]

/// True for programs that tests run. They also accept an authenticator in software, which no released program contains.
let isTested = testThreads != nil

/// Of the folders that are for one platform, those that are not for this one are left out. (The manifest is run by the
/// machine that builds, and apps for iOS are built on macOS.)
#if os(Linux)
    let isApple = false
#else
    let isApple = true
#endif

func library(
    _ name: String, _ dependencies: [Target.Dependency], exclude: [String] = [], resources: [Resource] = []
) -> Target {
    .target(
        name: name, dependencies: dependencies, exclude: exclude, resources: resources,
        swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
    .testTarget(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: settings)
}

let package = Package(
    name: "saltern",
    // The lowest that the kit compiles for: scripts/apple compares them with the APIs that it uses.
    platforms: [.macOS(.v14), .iOS(.v17)],
    products: [
        .executable(name: "saltern", targets: ["saltern"]),
        .executable(name: "saltern-client", targets: ["saltern-client"]),
        .library(name: "SalternClient", targets: ["SalternClient"]),
    ],
    targets: [
        .systemLibrary(name: "CLibEvent", providers: [.apt(["libevent-dev"])]),
        .systemLibrary(name: "CPlatform"),
        .target(name: "CUnixSocket"),
        .systemLibrary(name: "CLibPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "COpenSSL", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CFIDO2", pkgConfig: "libfido2", providers: [.apt(["libfido2-dev"])]),
        .systemLibrary(name: "CCBOR", pkgConfig: "libcbor", providers: [.apt(["libcbor-dev"])]),

        // Each target imports only those above it.
        library(
            "Cryptography", isApple ? [] : ["COpenSSL"], exclude: isApple ? ["OpenSSL"] : ["Apple"]),
        library(
            "VaultLog", ["Cryptography"], exclude: ["Links/code-words.LICENSE"],
            resources: [.embedInCode("Links/code-words.txt")]),
        library("TransportSecurity", ["COpenSSL", "Cryptography"]),
        library("EventLoop", ["CLibEvent"]),
        library("Postgres", ["CLibPQ", "EventLoop", "Cryptography"]),
        library("HTTPCore", []),
        library("WebAuthn", ["CFIDO2", "CCBOR", "HTTPCore", "Cryptography"]),
        library("CommandLineKit", []),
        library(
            "SalternClient",
            ["Cryptography", "VaultLog"] + (isApple ? [] : ["CCurl", "COpenSSL", "CSQLite", "CPlatform"]),
            exclude: isApple
                ? ["Transport/Curl", "Store/Linux", "Folder"]
                : ["Transport/Apple", "Store/Apple", "Passkeys/Apple"]),
        library("SecurityKey", ["CFIDO2", "SalternClient", "Cryptography"]),
        .executableTarget(
            name: "saltern-client",
            dependencies: ["SalternClient", "SecurityKey", "CommandLineKit", "Cryptography", "CPlatform"]
                + (isTested ? ["SoftwarePasskeys"] : []),
            // The file of the server's command: all programs of a release have one version.
            resources: [.embedInCode("VERSION")],
            swiftSettings: settings + (isTested ? [.define("SOFTWARE_PASSKEYS")] : [])),
        library("HTTPServer", ["HTTPCore", "EventLoop", "TransportSecurity"]),
        library(
            "SalternServer", ["HTTPCore", "Postgres", "Cryptography", "WebAuthn", "VaultLog"],
            resources: [.embedInCode("Migrations"), .embedInCode("Shares/LinkPage/Assets")]),
        library("WebhookDelivery", ["SalternServer", "Cryptography", "CCurl"]),
        .executableTarget(
            name: "saltern",
            dependencies: [
                "SalternServer", "WebhookDelivery", "HTTPServer", "TransportSecurity", "EventLoop", "Postgres",
                "Cryptography", "CommandLineKit", "CPlatform", "CUnixSocket", "WebAuthn",
            ],
            resources: [.embedInCode("VERSION")],
            swiftSettings: settings),
        .target(
            name: "SalternTesting",
            dependencies: [
                "SalternServer", "HTTPServer", "HTTPCore", "TransportSecurity", "EventLoop", "Postgres", "Cryptography",
            ],
            swiftSettings: settings),

        // An authenticator for tests. No product contains it.
        .target(
            name: "SoftwarePasskeys", dependencies: ["SalternClient", "Cryptography"], path: "Tests/SoftwarePasskeys",
            swiftSettings: settings),
        tests("CryptographyTests", ["Cryptography"], exclude: isApple ? ["OpenSSL"] : []),
        tests(
            "SalternClientTests",
            [
                "SalternClient", "VaultLog", "saltern", "SalternTesting", "SalternServer", "HTTPServer", "HTTPCore",
                "TransportSecurity", "EventLoop", "Postgres", "Cryptography", "CSQLite", "CPlatform",
                "SoftwarePasskeys",
            ]),
        // As an app whose default isolation is the main actor (SE-0466), which Xcode chooses for new apps.
        .testTarget(
            name: "MainActorAppTests", dependencies: ["SalternClient"],
            swiftSettings: settings + [.defaultIsolation(MainActor.self)]),
        tests(
            "SalternClientCommandTests",
            ["saltern-client", "SalternClient", "SecurityKey", "CommandLineKit", "Cryptography", "SalternTesting"]),
        tests("VaultLogTests", ["VaultLog", "SalternTesting", "Cryptography"]),
        tests("TransportSecurityTests", ["TransportSecurity", "Cryptography"]),
        tests("EventLoopTests", ["EventLoop"]),
        tests("PostgresTests", ["Postgres", "EventLoop", "SalternTesting"]),
        tests("HTTPCoreTests", ["HTTPCore"]),
        tests("WebAuthnTests", ["WebAuthn", "Cryptography"], exclude: ["make_vectors.py", "vectors.json"]),
        tests("HTTPServerTests", ["HTTPServer", "HTTPCore", "EventLoop", "TransportSecurity", "SalternTesting"]),
        tests(
            "SalternTests",
            [
                "saltern", "CommandLineKit", "SalternServer", "SalternTesting", "TransportSecurity", "HTTPServer",
                "HTTPCore", "Postgres", "EventLoop", "CUnixSocket",
            ]),
        tests(
            "WebhookDeliveryTests",
            ["WebhookDelivery", "SalternServer", "SalternTesting", "TransportSecurity", "Cryptography"]),
        tests(
            "SalternServerTests",
            [
                "SalternServer", "SalternTesting", "HTTPCore", "EventLoop", "Postgres", "Cryptography", "WebAuthn",
                "VaultLog", "COpenSSL",
            ]),
    ],
    swiftLanguageModes: [.v6]
)

// The example app, for the tests. Its own manifest is for authors of apps: there these names would be taken twice.
if Context.environment["SALTERN_WITH_EXAMPLE"] != nil {
    package.targets += [
        .target(name: "NotesModel", dependencies: ["SalternClient"], path: "Examples/Notes/Sources/NotesModel"),
        .executableTarget(
            name: "notes", dependencies: ["NotesModel", "SalternClient"], path: "Examples/Notes/Sources/notes-terminal"),
    ]
}

// The tests' build. No package could depend on one whose manifest always had unsafe flags.
if let testThreads {
    // One process for each module type-checks each file once. The tests of the kit are the largest module and the last one.
    let processes = ["-wmo", "-no-emit-module-separately-wmo", "-num-threads", testThreads]
    // The modules with most of the tests' CPU time.
    let optimised = [
        "Cryptography", "VaultLog", "TransportSecurity", "EventLoop", "Postgres", "HTTPCore", "HTTPServer",
        "SalternClient",
    ]
    for target in package.targets where target.type != .system {
        let flags =
            (target.name == "SalternClientTests" ? [] : processes) + (optimised.contains(target.name) ? ["-O"] : [])
        target.swiftSettings = (target.swiftSettings ?? []) + [.unsafeFlags(flags)]
    }
}

// Of the package, the kit is for Apple's platforms.
if isApple {
    package.products.removeAll { $0.name != "SalternClient" }
    package.targets.removeAll { !["Cryptography", "VaultLog", "SalternClient", "CryptographyTests"].contains($0.name) }
}
