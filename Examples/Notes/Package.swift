// swift-tools-version: 6.2
import PackageDescription

// An app of one's own depends on `.package(url: "https://…/saltern.git", .upToNextMinor(from: "0.13.3"))`.
let package = Package(
    name: "Notes",
    platforms: [.macOS(.v14), .iOS(.v17)],
    products: [.library(name: "NotesModel", targets: ["NotesModel"])],
    dependencies: [.package(name: "saltern", path: "../..")],
    targets: [
        .target(name: "NotesModel", dependencies: [.product(name: "SalternClient", package: "saltern")]),
        .executableTarget(
            name: "notes", dependencies: ["NotesModel", .product(name: "SalternClient", package: "saltern")],
            path: "Sources/notes-terminal"),
    ],
    swiftLanguageModes: [.v6]
)

// SwiftUI is for Apple's platforms.
#if !os(Linux)
    package.targets.append(.executableTarget(name: "NotesApp", dependencies: ["NotesModel"], path: "Sources/NotesApp"))
#endif
