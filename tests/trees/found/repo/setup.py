from setuptools import setup

setup(name="walk", packages=["walk"])
