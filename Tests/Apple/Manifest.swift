// What scripts/apple puts after the package's own manifest: the package as it is on Apple's platforms, on stand-ins for
// their modules.

let modules: [String: [Target.Dependency]] = [
    "Cryptography": ["CryptoKit", "CommonCrypto", "Security", "AppleFoundation"],
    "SalternClient": ["SQLite3", "Security", "AuthenticationServices", "CryptoKit", "AppleFoundation"],
    "Samples": ["SalternClient", "CryptoKit", "CommonCrypto", "AppleFoundation"],
]
// The examples of docs/kit.md, docs/app.md and Examples/WithoutKit; the script collects them.
package.targets.append(.target(name: "Samples", path: "Samples"))
// The example app, with its screens.
package.targets += [
    .target(name: "NotesModel", dependencies: ["SalternClient"], path: "Examples/Notes/Sources/NotesModel"),
    .executableTarget(
        name: "NotesApp",
        dependencies: ["NotesModel", "SalternClient", "SwiftUI", "UniformTypeIdentifiers", "AppleFoundation"],
        path: "Examples/Notes/Sources/NotesApp",
        swiftSettings: [.unsafeFlags(["-Xfrontend", "-import-module", "-Xfrontend", "AppleFoundation"])]),
]

for target in package.targets {
    guard let modules = modules[target.name] else { continue }
    target.dependencies += modules
    target.swiftSettings =
        settings + [.unsafeFlags(["-Xfrontend", "-import-module", "-Xfrontend", "AppleFoundation"])]
}

func standIn(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Tests/Apple/Interfaces/\(name)", swiftSettings: settings,
        linkerSettings: [.linkedLibrary("crypto")])
}

package.targets += [
    .systemLibrary(name: "COpenSSL"),
    .systemLibrary(name: "SQLite3", path: "Tests/Apple/Interfaces/SQLite3"),
    standIn("CryptoKit", ["COpenSSL"]),
    standIn("CommonCrypto"),
    standIn("AuthenticationServices", ["CryptoKit"]),
    standIn("CDarwin"),
    standIn("Security", ["COpenSSL"]),
    standIn("AppleFoundation", ["CDarwin", "Security"]),
    standIn("UniformTypeIdentifiers"),
    standIn("SwiftUI", ["UniformTypeIdentifiers"]),
    .testTarget(
        name: "AppleTests",
        dependencies: ["SalternClient", "Samples", "Cryptography", "Security", "AuthenticationServices", "COpenSSL"],
        path: "Tests/Apple/AppleTests", swiftSettings: settings),
    .testTarget(
        name: "SalternClientTests", dependencies: ["SalternClient", "Cryptography"],
        sources: ["Credentials", "Keyring", "Sealing", "API/ServerSentEventTests.swift"], swiftSettings: settings),
]
