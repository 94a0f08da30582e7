// swift-tools-version:6.0
import PackageDescription

let package = Package(
    name: "Life",
    dependencies: [.package(name: "SalternAPI", path: "../swift")],
    targets: [
        .executableTarget(name: "Life", dependencies: [.product(name: "SalternAPI", package: "SalternAPI")])
    ]
)
