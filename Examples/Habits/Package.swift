// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Habits",
    platforms: [.macOS(.v14)],
    dependencies: [.package(name: "saltern", path: "../..")],
    targets: [
        .executableTarget(
            name: "habits", dependencies: [.product(name: "SalternClient", package: "saltern")],
            swiftSettings: [.defaultIsolation(MainActor.self)])
    ])
